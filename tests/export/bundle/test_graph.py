"""Tests of `export.bundle.graph`."""

import pytest
import tensorflow as tf

from export.bundle import graph


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The folder of a SavedModel that is compiled by XLA."""

    class Squares(tf.Module):
        @tf.function(
            input_signature=[tf.TensorSpec([3], tf.float32)], jit_compile=True
        )
        def call(self, x):
            return {"y": tf.nn.softmax(x) ** 2}

    folder = tmp_path_factory.mktemp("compiled")
    module = Squares()
    tf.saved_model.save(module, str(folder), {"serving_default": module.call})
    return folder


def test_an_export_holds_only_what_the_stock_server_runs(export_dir):
    meta_graph = graph.read_meta_graph(export_dir / "1")

    assert graph.foreign_ops(meta_graph) == set()
    assert graph.compiled_functions(meta_graph) == set()
    # Those within functions count too.
    assert {"SentencepieceTokenizeOp", "TopKV2"} <= graph.used_ops(meta_graph)


def test_an_op_that_no_server_has_is_found(export_dir):
    meta_graph = graph.read_meta_graph(export_dir / "1")
    (first, *_) = meta_graph.graph_def.library.function
    first.node_def.add(name="n", op="FastSentencepieceTokenize")
    meta_graph.graph_def.node.add(name="n", op="XlaDot")
    meta_graph.graph_def.node.add(name="p", op="EagerPyFunc")

    assert graph.foreign_ops(meta_graph) == {
        "EagerPyFunc",
        "FastSentencepieceTokenize",
        "XlaDot",
    }


def test_compiled_functions_are_found(compiled):
    meta_graph = graph.read_meta_graph(compiled)

    assert any("call" in name for name in graph.compiled_functions(meta_graph))
