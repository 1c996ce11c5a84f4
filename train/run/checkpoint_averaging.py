"""Averages checkpoints, and chooses the final weights (Section 6.1)."""

import pathlib
from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from command_line.errors import UserError, first_line
from keras_transformer import Transformer
from train.run.run_folder import step_of

# Errors of TensorFlow for checkpoints that are damaged or of other shapes.
READ_ERRORS = (tf.errors.OpError, AssertionError, IndexError, ValueError)


def make_float32_copy(transformer: Transformer) -> Transformer:
    """Returns a float32 model of the same class, with random weights."""
    config = {**transformer.get_config(), "dtype": "float32"}
    copied = type(transformer).from_config(config)
    copied.build()
    return copied


def load_mean(averaged: Transformer, paths: Iterable[str | pathlib.Path]) -> None:
    """Sets a model's weights to the mean of checkpoints, summed in float64."""
    # TensorFlow's checkpoints reach all weights only through the optimizer, as
    # they ignore lists of layers in a Keras layer.
    holder = tf.Module()
    holder._trainable_variables = [w.value for w in averaged.weights]
    checkpoint = tf.train.Checkpoint(optimizer=holder)
    paths = list(paths)
    sums = [np.zeros(w.shape, np.float64) for w in averaged.weights]
    for path in paths:
        try:
            status = checkpoint.read(str(path))
            # The moments of the optimizer are not needed.
            status.assert_existing_objects_matched().expect_partial()
        except READ_ERRORS as error:
            raise UserError(
                f"{path} holds no weights of this run's model: {first_line(error)}"
            ) from None
        for total, weights in zip(sums, averaged.get_weights(), strict=True):
            total += weights
    averaged.set_weights([total / len(paths) for total in sums])


def save_model(path: pathlib.Path, model: Transformer) -> None:
    """Writes a `.keras` file beside `path` and renames it."""
    beside = path.with_suffix(".part.keras")
    model.save(beside)
    beside.replace(path)


def choose_weights(
    averaged: Transformer,
    paths: list[str],
    score: Callable[[], dict[str, float]],
    best: int | None = None,
) -> tuple[list[str], dict[str, float], str]:
    """Gives a model the mean of checkpoints, or one of a higher accuracy.

    That one is the last, or the one after update `best`. In a short run the
    earlier checkpoints may be so much worse than the last one that their mean is
    worse, too. Of loss, perplexity and accuracy, only accuracy chose the weights
    of the higher BLEU in both runs that were compared (the demo's corpus, 500 and
    1,200 updates).

    Returns:
        The checkpoints whose mean the model is, its scores, and a description.
    """
    alone = [path for path in paths if step_of(path) == best] or paths[-1:]
    candidates = [paths] if len(paths) == 1 else [paths, alone]
    scores = []
    for chosen in candidates:
        load_mean(averaged, chosen)
        scores.append(score())
    order = sorted(range(len(candidates)), key=lambda i: -scores[i]["accuracy"])
    load_mean(averaged, candidates[order[0]])
    described = []
    for i in order:
        steps = ", ".join(f"{step_of(path):,}" for path in candidates[i])
        described.append(
            f"after update{'s'[: len(candidates[i]) > 1]} {steps} "
            f"(validation accuracy {scores[i]['accuracy']:.2%})"
        )
    description = f"the mean of the weights {', not '.join(described)}"
    return candidates[order[0]], scores[order[0]], description
