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
    # The loss computes logits in a loop, forward and with both gradients.
    width = transformer.architecture.hidden_dim
    logits = 3 * 2 * rows * length * width * vocabulary_size
    return count_flops(graph) + logits


def count_flops(graph: tf.Graph) -> int:
    """Returns the floating point operations of a graph's matrix products.

    Their shapes must be known. Loops are not counted.
    """
    total = 0
    for operation in graph.get_operations():
        if operation.type not in PRODUCTS:
            continue
        left, output = operation.inputs[0].shape, operation.outputs[0].shape
        flag = "transpose_a" if operation.type == "MatMul" else "adj_x"
        inner = left[-2] if operation.get_attr(flag) else left[-1]
        total += 2 * math.prod(output) * inner
    return total
