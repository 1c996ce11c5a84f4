"""Loads the model of a run folder, and reads what the run noted about it."""

import hashlib
import json
import pathlib
import sys
from collections.abc import Iterable, Sequence

import keras
import numpy as np

from command_line.errors import UserError, refuse_damage
from export.model.search import SearchSettings
from export.model.signature_inputs import DEFAULT_SIGNATURES
from export.model.tokenized_model import check_sizes
from export.model.translator import Translator
from keras_transformer import SubwordTokenizer, Transformer
from keras_transformer.tokenizer import read_protos
from text_processing.language_tags import LanguageTags

SIGNATURE = "serving_default"


def load_run(
    run_dirs: pathlib.Path | Sequence[pathlib.Path],
    settings: SearchSettings,
    precision: str = "float32",
    signatures: Iterable[str] = DEFAULT_SIGNATURES,
    languages: LanguageTags | None = None,
) -> Translator:
    """Returns the `Translator` of a finished run, or of several: an ensemble.

    The precision is `"float32"`, or `"bfloat16"` for weights of half the size;
    softmax and scores are float32 in both. The `languages` are those of
    `read_languages`, by default all.
    """
    if isinstance(run_dirs, pathlib.Path):
        run_dirs = [run_dirs]
    first, *others = (read_run(run_dir, precision) for run_dir in run_dirs)
    for run_dir, (_, protos) in zip(run_dirs[1:], others, strict=True):
        if protos != first[1]:
            raise UserError(
                "--run-dir must be runs with the same tokenizer. "
                f"Received: {run_dirs[0]} and {run_dir}, whose tokenizers "
                "differ"
            )
    models = [transformer for transformer, _ in (first, *others)]
    try:
        languages = languages or read_languages(run_dirs)
        return Translator(models, first[1], settings, signatures, languages)
    except ValueError as error:
        raise UserError(str(error)) from None


def read_run(
    run_dir: pathlib.Path, precision: str = "float32"
) -> tuple[Transformer, tuple[bytes, bytes | None]]:
    """Returns the model of a finished run and its tokenizers' protos."""
    paths = [run_dir / "model.keras", run_dir / "tokenizer.model"]
    for path in paths:
        if not path.exists():
            raise UserError(
                "--run-dir must be the folder of a finished `python -m train`. "
                f"Received: {run_dir}, which has no {path.name}"
            )
    with refuse_damage(paths[0]):
        transformer = keras.saving.load_model(paths[0], compile=False)
    check_model(transformer, paths[0])
    protos = read_protos(run_dir)
    try:
        check_sizes(SubwordTokenizer(*protos), transformer)
    except ValueError as error:
        raise UserError(str(error)) from None
    return with_dtype(transformer, precision), protos


def check_model(model: keras.Model, path: pathlib.Path) -> None:
    """Refuses a model of another class, or with weights that are not finite."""
    if not isinstance(model, Transformer):
        raise UserError(
            f"{path} must hold a Transformer. Received: {type(model).__name__}"
        )
    broken = [
        weight.path
        for weight in model.weights
        if not np.isfinite(keras.ops.convert_to_numpy(weight)).all()
    ]
    if broken:
        more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
        raise UserError(
            f"{path} must have finite weights. Received NaN or infinity in: "
            f"{', '.join(broken[:3])}{more}"
        )


def read_arguments(run_dir: pathlib.Path) -> dict | None:
    """Returns the content of a run's `arguments.json`, or `None`."""
    path = run_dir / "arguments.json"
    if not path.exists():
        return None
    with refuse_damage(path):
        # The file must hold a JSON object.
        return {**json.loads(path.read_text("utf-8"))}


def read_languages(
    run_dirs: Sequence[pathlib.Path], source: str = "", target: str = ""
) -> LanguageTags | None:
    """Returns the tags of a model of several languages, or `None`.

    `source` and `target` are codes to which the model is narrowed, or `""`.

    Raises:
        UserError: If the model lacks a language, or if the runs of an ensemble have
            different ones.
    """
    found, *others = ((read_arguments(x) or {}).get("languages") for x in run_dirs)
    if any(other != found for other in others):
        raise UserError(
            "--run-dir must be runs with the same languages. "
            f"Received: {', '.join(map(str, run_dirs))}"
        )
    if not found:
        if target:
            raise UserError(
                "--target-language must be left out for a model of one pair. "
                f"Received: {target}"
            )
        return None
    with refuse_damage(run_dirs[0] / "arguments.json"):
        tags = LanguageTags(**found)
    return tags.narrowed(source, target)


def with_dtype(transformer: Transformer, dtype: str) -> Transformer:
    """Returns the model with weights and arithmetic of another dtype."""
    if transformer.dtype_policy.name == dtype:
        return transformer
    other = type(transformer).from_config({**transformer.get_config(), "dtype": dtype})
    if not other.built:  # A subclass may have layers of its own.
        other.build()
    other.set_weights(transformer.get_weights())
    return other


def read_notes(run_dir: pathlib.Path) -> dict:
    """Returns the content of `model.json`, if it describes the present model.

    `{"sha256": …, "validation": {"loss": …, "bleu": …}, "samples": [{"source": …,
    "reference": …, "translation": …}]}`; any key may be missing.
    """
    path = run_dir / "model.json"
    if not path.exists():
        return {}
    with refuse_damage(path):
        notes = json.loads(path.read_text("utf-8"))
        noted = notes.get("sha256")
    with (run_dir / "model.keras").open("rb") as file:
        if noted == hashlib.file_digest(file, "sha256").hexdigest():
            return notes
    print(
        f"{path} is of another model.keras, so its scores and samples are left out",
        file=sys.stderr,
    )
    return {}
