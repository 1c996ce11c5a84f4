"""Tests of `export.bundle.graph`."""

from export.bundle import graph


def test_an_export_holds_only_what_the_stock_server_runs(export_dir):
    meta_graph = graph.read_meta_graph(export_dir / "1")

    assert graph.foreign_ops(meta_graph) == set()
    assert graph.compiled_functions(meta_graph) == set()
    # Those within functions count too.
    assert {"SentencepieceTokenizeOp", "TopKV2"} <= graph.used_ops(meta_graph)
