"""Counts the matrix products in the graph of an update or of a layer."""

import math

import keras
import tensorflow as tf

from keras_transformer import Preset, Transformer
from train.loop.training_model import TrainingModel

PRODUCTS = ("MatMul", "BatchMatMulV2")


def update_flops(preset: Preset, vocabulary_size: int, rows: int, length: int) -> int:
    """Counts the matrix products in the graph of one update, without padding."""
    transformer = Transformer.from_preset(
        preset, vocabulary_size, sequence_length=length
    )
    task = TrainingModel(transformer, preset.recipe.label_smoothing)
    task.build()
    task.compile(keras.optimizers.SGD())  # Any optimizer: it is not applied.
    ids = tf.TensorSpec((1, rows, length), tf.int32)
    batch = dict.fromkeys(("source_ids", "target_ids", "labels"), ids)
    batch["num_tokens"] = tf.TensorSpec((), tf.float32)
    update = tf.function(task.gradients, autograph=False)
    graph = update.get_concrete_function(batch).graph
    return count_products(graph, rows * length)


def count_products(graph: tf.Graph, num_tokens: int) -> int:
    """Returns the floating point operations of a graph's matrix products.

    Its shapes are known but for `num_tokens`, the number of real target tokens,
    which the graph finds out when it runs.
    """
    total = 0
    for operation in graph.get_operations():
        if operation.type not in PRODUCTS:
            continue
        left, output = (
            [num_tokens if size is None else size for size in tensor.shape]
            for tensor in (operation.inputs[0], operation.outputs[0])
        )
        flag = "transpose_a" if operation.type == "MatMul" else "adj_x"
        inner = left[-2] if operation.get_attr(flag) else left[-1]
        total += 2 * math.prod(output) * inner
    return total
