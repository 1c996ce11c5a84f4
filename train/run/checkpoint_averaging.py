"""Averages checkpoints, and chooses the final weights (Section 6.1)."""

import dataclasses
import json
import pathlib
import zipfile
from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from command_line.errors import UserError, first_line
from keras_transformer import Transformer
from train.run.run_description import RunDescription
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


def save_model(
    path: pathlib.Path, model: Transformer, checkpoints: Iterable[str | pathlib.Path]
) -> None:
    """Writes a `.keras` file beside `path` and renames it.

    Its zip comment lists, in JSON, the averaged checkpoints. It stays with the
    file, and Keras ignores it.
    """
    beside = path.with_suffix(".part.keras")
    model.save(beside)
    names = [pathlib.Path(prefix).name for prefix in checkpoints]
    with zipfile.ZipFile(beside, "a") as file:
        file.comment = json.dumps({"checkpoints": names}).encode()
    beside.replace(path)


def make_model_of_run(run_dir: pathlib.Path) -> Transformer:
    """Creates the model of a run in float32, with random weights."""
    description = RunDescription.load_run(run_dir, "--run-dir")
    arguments = description.arguments
    return Transformer.from_preset(
        description.preset,
        arguments["vocabulary_size"],
        sequence_length=arguments["max_length"],
        source_vocabulary_size=arguments.get("source_vocabulary_size"),
        dtype="float32",
        name="transformer",
    )


@dataclasses.dataclass(frozen=True)
class FinalWeights:
    """Checkpoints of the final model, and its scores."""

    paths: list[str]
    scores: dict[str, float]
    description: str


def choose_weights(
    averaged: Transformer,
    paths: list[str],
    score: Callable[[], dict[str, float]],
    best: int | None = None,
) -> FinalWeights:
    """Gives a model the mean of checkpoints, or one of a higher accuracy.

    In a short run the earlier checkpoints may be so much worse than the last
    one that their mean is worse, too. Of loss, perplexity and accuracy, only
    accuracy chose the weights of the higher BLEU in both runs that were
    compared (the demo's corpus, 500 and 1,200 updates).
    """
    load_mean(averaged, paths)
    scores, description = score(), describe_mean(paths, best)
    if len(paths) == 1:
        return FinalWeights(paths, scores, description)
    steps = [step_of(path) for path in paths]
    name, index = ("last", -1) if best is None else ("best", steps.index(best))
    mean = averaged.get_weights()
    load_mean(averaged, [paths[index]])
    alone = score()
    if scores["accuracy"] < alone["accuracy"]:
        description = (
            f"the {name} checkpoint, after update {steps[index]:,} (validation "
            f"accuracy {alone['accuracy']:.2%}; the mean of {len(paths)} "
            f"checkpoints: {scores['accuracy']:.2%})"
        )
        return FinalWeights([paths[index]], alone, description)
    averaged.set_weights(mean)
    description += (
        f" (validation accuracy {scores['accuracy']:.2%}; the {name} one "
        f"alone: {alone['accuracy']:.2%})"
    )
    return FinalWeights(paths, scores, description)


def describe_mean(paths: list[str], best: int | None) -> str:
    """Returns the text that describes a mean of checkpoints."""
    plural = "s"[: len(paths) > 1]
    where = f"in {len(paths)} checkpoint{plural}"
    if best is not None:
        steps = [str(step_of(path)) for path in paths]
        where = f"after update{plural} {', '.join(steps)}"
        where += f" around the best, {best}" if plural else ", the best"
    return f"the mean of the weights {where}"
