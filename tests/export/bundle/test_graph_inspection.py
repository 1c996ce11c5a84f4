"""Tests of `export.bundle.graph_inspection`."""

from export.bundle import graph_inspection


def test_an_export_holds_only_what_the_stock_server_runs(export_dir):
    meta_graph = graph_inspection.read_meta_graph(export_dir / "1")

    assert graph_inspection.unsupported_ops(meta_graph) == set()
    assert graph_inspection.compiled_functions(meta_graph) == set()
    # Those within functions count too.
    assert {"SentencepieceTokenizeOp", "TopKV2"} <= graph_inspection.used_ops(
        meta_graph
    )
