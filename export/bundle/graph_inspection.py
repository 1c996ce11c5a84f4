"""Lists signatures and ops of a SavedModel, and ops that TF Serving lacks."""

import pathlib
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from export.bundle.file_layout import SAVED_MODEL

# The server links the ops of TensorFlow, except those that call Python, and the
# ops of tensorflow-text. The tokenizer uses these.
TEXT_OPS = {
    "SentencepieceOp",
    "SentencepieceTokenizeOp",
    "SentencepieceDetokenizeOp",
    "SentencepieceIdToStringOp",
}
PREDICT = "tensorflow/serving/predict"
# XLA is off by default in the server.
XLA = "_XlaMustCompile"


def read_meta_graph(folder: pathlib.Path) -> meta_graph_pb2.MetaGraphDef:
    """Reads the graph of a SavedModel, without loading it."""
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((folder / SAVED_MODEL).read_bytes())
    (meta_graph,) = model.meta_graphs
    return meta_graph


def served_signatures(meta_graph) -> dict[str, meta_graph_pb2.SignatureDef]:
    """Returns the signatures that clients can call, by name."""
    return {
        name: signature
        for name, signature in sorted(meta_graph.signature_def.items())
        if signature.method_name == PREDICT
    }


def nodes_in(meta_graph) -> Iterator[node_def_pb2.NodeDef]:
    """Yields the nodes of a graph and of its functions."""
    yield from meta_graph.graph_def.node
    for function in meta_graph.graph_def.library.function:
        yield from function.node_def


def used_ops(meta_graph) -> set[str]:
    """Returns the names of a graph's ops, without calls of its functions."""
    functions = {f.signature.name for f in meta_graph.graph_def.library.function}
    return {node.op for node in nodes_in(meta_graph)} - functions


def unsupported_ops(meta_graph) -> set[str]:
    """Returns the ops of a graph that the stock server does not link."""
    core = {
        name
        for name in dir(tf.raw_ops)
        if not name.startswith("Xla") and "PyFunc" not in name
    }
    return used_ops(meta_graph) - core - TEXT_OPS


def compiled_functions(meta_graph) -> set[str]:
    """Returns the names of the functions that XLA compiles, and of their calls."""
    functions = [
        (function.signature.name, function.attr)
        for function in meta_graph.graph_def.library.function
    ]
    calls = [(node.name, node.attr) for node in nodes_in(meta_graph)]
    return {name for name, attr in functions + calls if XLA in attr and attr[XLA].b}
