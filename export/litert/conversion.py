"""Converts graphs to LiteRT files."""

import tempfile
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from tensorflow.lite.tools import flatbuffer_utils
from tensorflow.python.framework import convert_to_constants


def convert(function: Callable, precision: str) -> bytes:
    """Returns the LiteRT file of a `tf.function`.

    Its inputs and outputs have the names of the function's, a dict of named tensors:
    see `Interpreter.get_signature_runner`. The precision is `"float32"`, or `"int8"`
    for the weights of products; these are multiplied as integers, with a scale for
    each column of the weights and for each row of the other factor.
    """
    concrete = function.get_concrete_function()
    # The converter leaves out weights that are Keras variables, silently.
    frozen = convert_to_constants.convert_variables_to_constants_v2(concrete)
    names = sorted(concrete.structured_outputs)

    @tf.function(input_signature=tf.nest.flatten(function.input_signature))
    def call(*inputs):
        return dict(zip(names, frozen(*inputs), strict=True))

    # Signatures need a SavedModel.
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(
            tf.Module(),
            folder,
            signatures={"serving_default": call},
            # Those of Keras's swish cannot be saved.
            options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
        )
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        if precision == "int8":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        return simplify(converter.convert())


def simplify(content: bytes) -> bytes:
    """Keeps equal constants, as tied embeddings are, once, and makes calls faster.

    After `top_k` of a tensor whose sizes are marked as dynamic, each call would
    prepare the operations anew. The marks are needed at inputs and outputs only.
    """
    model = flatbuffer_utils.convert_bytearray_to_object(bytearray(content))
    places = {}
    for graph in model.subgraphs:
        dynamic = {*graph.inputs, *graph.outputs}
        for index, tensor in enumerate(graph.tensors):
            if index not in dynamic:
                tensor.shapeSignature = None
            data = model.buffers[tensor.buffer].data
            if data is not None and len(data):
                key = np.asarray(data).tobytes()
                place = places.setdefault(key, tensor.buffer)
                if place != tensor.buffer:
                    model.buffers[tensor.buffer].data = None
                    tensor.buffer = place
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))
