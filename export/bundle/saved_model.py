"""Reads the folder of a run, and that of an export."""

import json
import pathlib
from collections.abc import Callable

import keras
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

from command_line.errors import UserError
from command_line.errors import refuse_damage
from export.bundle.layout import SAVED_MODEL
from export.bundle.versions import find_version
from export.model.search import SearchSettings
from export.model.translator import Translator
from keras_transformer import Transformer

SIGNATURE = "serving_default"


def load_run(
    run_dir: pathlib.Path,
    settings: SearchSettings,
    precision: str = "float32",
) -> Translator:
    """Makes the translator of a finished run.

    Args:
        run_dir: The run folder.
        settings: How to search.
        precision: `"float32"`, or `"bfloat16"` for weights of half the size;
            softmax and scores are float32 in both.

    Raises:
        UserError: If the folder holds no finished run, or a damaged one, or
            if the settings do not fit its model.
    """
    run = read_run(run_dir, precision)
    try:
        return Translator(*run, settings)
    except ValueError as error:
        raise UserError(str(error)) from None


def read_run(
    run_dir: pathlib.Path, precision: str = "float32"
) -> tuple[Transformer, bytes]:
    """Returns the model of a finished run and its tokenizer's bytes.

    Raises:
        UserError: If the folder holds no finished run, or a damaged one.
    """
    paths = [run_dir / "model.keras", run_dir / "tokenizer.model"]
    for path in paths:
        if not path.exists():
            raise UserError(
                "--run-dir must be the folder of a finished `python -m train`. "
                f"Received: {run_dir}, which has no {path.name}"
            )
    with refuse_damage(paths[0]):
        transformer = keras.saving.load_model(paths[0], compile=False)
    return with_dtype(transformer, precision), paths[1].read_bytes()


def read_arguments(run_dir: pathlib.Path) -> dict | None:
    """Returns what a run noted of itself in `arguments.json`, if it did.

    Raises:
        UserError: If the file is damaged.
    """
    path = run_dir / "arguments.json"
    if not path.exists():
        return None
    with refuse_damage(path):
        return json.loads(path.read_text("utf-8"))


def with_dtype(transformer: Transformer, dtype: str) -> Transformer:
    """Returns the model with weights and arithmetic of another type."""
    if transformer.dtype_policy.name == dtype:
        return transformer
    other = Transformer.from_config(
        {**transformer.get_config(), "dtype": dtype}
    )
    other.build()
    other.set_weights(transformer.get_weights())
    return other


def load_translate(export_dir: pathlib.Path) -> Callable:
    """Loads the newest version of an export.

    Returns:
        Function from a string tensor `(B,)` to the dict of outputs.

    Raises:
        UserError: If there is none, or if it is damaged.
    """
    loaded = load_version(find_version(export_dir, SAVED_MODEL))
    translate = loaded.signatures[SIGNATURE]

    def call(text):
        return translate(text=tf.convert_to_tensor(text, tf.string))

    call.keep_alive = loaded  # The function alone does not hold its weights.
    return call


def load_version(folder: pathlib.Path):
    """Loads a SavedModel.

    Raises:
        UserError: If it is damaged.
    """
    with refuse_damage(folder, "; `python -m export.check` says more"):
        return tf.saved_model.load(str(folder))
