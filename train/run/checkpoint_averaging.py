"""Averages checkpoints and writes `model.keras` (Section 6.1)."""

import json
import pathlib
import zipfile
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from command_line.errors import UserError
from keras_transformer import Transformer
from train.run.run_description import RunDescription

# Errors of TensorFlow for checkpoints that are damaged or of other shapes.
READ_ERRORS = (tf.errors.OpError, AssertionError, IndexError, ValueError)


def average_checkpoints(
    transformer: Transformer,
    paths: Iterable[str | pathlib.Path],
    moving: bool = False,
) -> Transformer:
    """Returns a float32 Transformer with the mean weights of checkpoints.

    The sum runs in float64. The weights of `transformer` stay as they are.

    Args:
        transformer: A model of the trained shape.
        paths: Prefixes of checkpoints, at least one.
        moving: Bool, whether to take the exponential moving averages that the
            optimizer kept, instead of the weights themselves.

    Raises:
        UserError: If a checkpoint cannot be read, or is of another shape.
    """
    config = {**transformer.get_config(), "dtype": "float32"}
    averaged = Transformer.from_config(config)
    averaged.build()
    # TensorFlow's checkpoints reach all weights only through the optimizer, as
    # they ignore lists of layers in a Keras layer.
    holder = tf.Module()
    name = "averages" if moving else "_trainable_variables"
    setattr(holder, name, [w.value for w in averaged.weights])
    checkpoint = tf.train.Checkpoint(optimizer=holder)
    paths = list(paths)
    sums = [np.zeros(w.shape, np.float64) for w in averaged.weights]
    for path in paths:
        try:
            status = checkpoint.read(str(path))
            # The moments of the optimizer are not needed.
            status.assert_existing_objects_matched().expect_partial()
        except READ_ERRORS as error:
            reason = str(error).strip().splitlines()[0]
            raise UserError(
                f"{path} holds no weights of this run's model: {reason}"
            ) from None
        for total, weights in zip(sums, averaged.get_weights(), strict=True):
            total += weights
    averaged.set_weights([total / len(paths) for total in sums])
    return averaged


def save_model(
    path: pathlib.Path,
    model: Transformer,
    checkpoints: Iterable[str | pathlib.Path],
    moving: bool = False,
) -> None:
    """Writes a `.keras` file beside `path` and renames it.

    Its zip comment lists, in JSON, the averaged checkpoints. It stays with the
    file, and Keras ignores it.

    Args:
        path: The file.
        model: Result of `average_checkpoints`.
        checkpoints: Prefixes of the averaged checkpoints.
        moving: Bool, whether their moving averages were used.
    """
    beside = path.with_suffix(".part.keras")
    model.save(beside)
    names = [pathlib.Path(prefix).name for prefix in checkpoints]
    with zipfile.ZipFile(beside, "a") as file:
        file.comment = json.dumps(
            {"checkpoints": names, "moving_average": moving}
        ).encode()
    beside.replace(path)


def make_model_of_run(run_dir: pathlib.Path) -> tuple[Transformer, bool]:
    """Creates the model of a run, with random weights.

    Returns:
        The model, and whether the run keeps moving averages of its weights.

    Raises:
        UserError: If the folder holds no run.
    """
    description = RunDescription.load_run(run_dir, "--run-dir")
    arguments = description.arguments
    model = Transformer.from_preset(
        description.preset,
        arguments["vocabulary_size"],
        sequence_length=arguments["max_length"],
        source_vocabulary_size=arguments.get("source_vocabulary_size"),
        name="transformer",
    )
    return model, arguments.get("average_decay") is not None


def write_mean(
    run_dir: pathlib.Path,
    transformer: Transformer,
    paths: list[str],
    moving: bool,
    best: int | None = None,
) -> Transformer:
    """Writes `model.keras` from checkpoints, and returns the model.

    Args:
        run_dir: Folder of the run.
        transformer: A model of the shape that was trained.
        paths: Prefixes of checkpoints, oldest first.
        moving: Bool, whether to take the moving averages of the latest.
        best: Int, step of the best checkpoint, if `paths` are those around it.
    """
    if moving:
        paths = paths[-1:]
    path = run_dir / "model.keras"
    averaged = average_checkpoints(transformer, paths, moving)
    save_model(path, averaged, paths, moving)
    plural = "s"[: len(paths) > 1]
    what = "moving average of the weights" if moving else "mean of the weights"
    where = f"in {len(paths)} checkpoint{plural}"
    if best is not None:
        steps = [pathlib.Path(prefix).name[5:] for prefix in paths]
        where = f"after update{plural} {', '.join(steps)}"
        where += f" around the best, {best}" if plural else ", the best"
    print(f"{path} is the {what} {where}")
    return averaged
