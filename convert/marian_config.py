"""Reads the configuration of a model of Marian, and its search options.

A model holds all options of Marian that change its computation. Each must be
known here, with a value that is computed; any other is refused.
"""

import math
import pathlib
import reprlib
from typing import Any

import yaml

from command_line.errors import UserError, first_line
from keras_transformer import Architecture

# Its gelu is x times sigmoid(1.702 x), which is not supported.
ACTIVATIONS = {"relu": "relu", "swish": "swish"}
# Options with the values that are computed; the first is Marian's default.
SUPPORTED_VALUES = {
    "type": ("transformer",),
    "transformer-preprocess": ("", "d"),  # "d" is dropout.
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("", "d"),
    "transformer-ffn-depth": (2,),
    "transformer-no-projection": (False,),
    "transformer-tied-layers": ([],),
    "transformer-train-position-embeddings": (False,),
    "transformer-train-positions": (False,),
    "transformer-disable-position-embeddings": (False,),
    "transformer-attention-mask": ("default",),
    "transformer-alibi-shift": (False,),
    "transformer-alibi-trainable": (False,),
    "alibi": (False,),
    "transformer-no-bias": (False,),
    "transformer-no-affine": (False,),
    "transformer-rnn-projection": (False,),
    "transformer-decoder-dim-ffn": (0,),
    "transformer-decoder-ffn-depth": (0,),
    "layer-normalization": (False,),  # Of the recurrence's gates.
    "transformer-pool": (False,),
    "output-omit-bias": (False,),
    "output-approx-knn": ([],),
    "lemma-dim-emb": (0,),
    "lemma-dependency": ("",),
    "factors-combine": ("sum",),
    "factors-dim-emb": (0,),
    "right-left": (False,),
    "ulr": (False,),
    "ulr-dim-emb": (0,),
    "ulr-trainable-transformation": (False,),
    "input-types": ([],),
    "input-reorder": ([],),
    "input-join-fields": (False,),
}
# Options that `read_architecture` reads.
HYPERPARAMETERS = frozenset(
    {
        *("dec-cell", "dec-depth", "dim-emb", "enc-depth"),
        *("transformer-decoder-autoreg", "transformer-dim-ffn"),
        *("transformer-dropout", "transformer-ffn-activation"),
        "transformer-heads",
    }
)
# Options of other types of models and of training, and sizes that the tensors
# have.
WITHOUT_EFFECT = frozenset(
    {
        *("bert-class-symbol", "bert-mask-symbol", "bert-masking-fraction"),
        *("bert-sep-symbol", "bert-train-type-embeddings"),
        *("bert-type-vocab-size", "best-deep", "dec-cell-base-depth"),
        *("dec-cell-high-depth", "dim-rnn", "dim-vocabs", "dropout-rnn"),
        *("dropout-src", "dropout-trg", "enc-cell", "enc-cell-depth"),
        *("enc-type", "original-type", "separator-symbol", "skip"),
        *("special-vocab", "tied-embeddings", "tied-embeddings-all"),
        *("tied-embeddings-src", "transformer-aan-activation"),
        *("transformer-aan-depth", "transformer-aan-nogate"),
        *("transformer-depth-scaling", "transformer-dim-aan"),
        *("transformer-dropout-attention", "transformer-dropout-ffn"),
        *("transformer-guided-alignment-layer", "ulr-dropout"),
        *("ulr-keys-vectors", "ulr-query-vectors"),
        *("ulr-softmax-temperature", "version"),
    }
)
# Search options with the values that are computed, and Marian's default first.
SUPPORTED_SEARCH_VALUES = {
    "word-penalty": (0,),
    "output-sampling": ([], False),
    "force-decode": (False,),
    "allow-unk": (False,),
}


def read_configuration(text: bytes, path: pathlib.Path) -> dict:
    """Reads the configuration that a model holds.

    Raises:
        UserError: At an option that is unknown or has an unsupported value,
            with its name and value.
    """
    found = read_yaml(text, f"the configuration in {path}")
    where = f"the configuration of {path}"
    for key, value in found.items():
        if value is None or key in HYPERPARAMETERS | WITHOUT_EFFECT:
            continue
        if key not in SUPPORTED_VALUES:
            wanted = "absent: its effect is not known"
            raise config_error(where, key, wanted, value)
    check_values(found, SUPPORTED_VALUES, where)
    return found


def read_yaml(text: bytes, where: str) -> dict:
    """Reads a YAML mapping."""
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(
            f"{where} must be YAML. Received: {first_line(error)}"
        ) from None
    if not isinstance(found, dict):
        raise UserError(f"{where} must be a YAML mapping")
    return found


def check_values(found: dict, supported: dict, where: str) -> None:
    """Refuses options with values that are not supported."""
    for key, values in supported.items():
        value = found.get(key)
        if value is not None and value not in values:
            raise config_error(where, key, repr(values[0]), value)


def config_error(where: str, key: Any, wanted: str, value: Any) -> UserError:
    name = key if str(key).isprintable() else repr(key)
    return UserError(
        f"{name} in {where} must be {wanted}. Received: {reprlib.repr(value)}"
    )


def read_architecture(found: dict, path: pathlib.Path, **others: Any) -> Architecture:
    """Reads the hyperparameters of a model.

    Args:
        found: Its configuration.
        path: Path of the model, for errors.
        **others: Hyperparameters that the configuration does not give.

    Raises:
        UserError: If one is missing or has an unsupported value.
    """
    where = f"the configuration of {path}"

    def number(key: str) -> int:
        value = found.get(key)
        if type(value) is not int or value < 1:
            raise config_error(where, key, "a number", value)
        return value

    def choice(key: str, choices: dict[str, str], default: str) -> str:
        value = found.get(key, default)
        if not isinstance(value, str) or value not in choices:
            raise config_error(where, key, " or ".join(choices), value)
        return choices[value]

    mixers = {"self-attention": "attention", "rnn": "ssru"}
    mixer = choice("transformer-decoder-autoreg", mixers, "self-attention")
    if mixer == "ssru":
        choice("dec-cell", {"ssru": "ssru"}, "gru")
    width, heads = number("dim-emb"), number("transformer-heads")
    if width % heads or width % 2 or width < 4:
        wanted = f"even, and a multiple of the {heads} heads"
        raise config_error(where, "dim-emb", wanted, width)
    return Architecture(
        num_layers=number("enc-depth"),
        decoder_layers=number("dec-depth"),
        hidden_dim=width,
        intermediate_dim=number("transformer-dim-ffn"),
        num_heads=heads,
        key_dim=width // heads,
        value_dim=width // heads,
        dropout=found.get("transformer-dropout", 0.0),
        use_bias=True,
        activation=choice("transformer-ffn-activation", ACTIVATIONS, "swish"),
        logits_bias=True,
        max_wavelength=max_wavelength(width),
        decoder_mixer=mixer,
        **others,
    )


def max_wavelength(width: int) -> float:
    """Returns the `max_wavelength` of Marian's sines.

    They have frequencies from 1 to 1/10000, the last included, which the paper
    excludes.
    """
    return float(10_000 ** (width / (width - 2)))


def find_search_options(model: pathlib.Path) -> pathlib.Path | None:
    """Returns the file of search options beside a model, if there is one.

    Marian writes `model.npz.decoder.yml`; OPUS-MT's downloads hold
    `decoder.yml`.
    """
    own = model.with_name(f"{model.name}.decoder.yml")
    for path in (own, model.with_name("decoder.yml")):
        if path.is_file():
            return path
    return None


def read_search_options(path: pathlib.Path | None) -> dict:
    """Reads the search options of a model.

    Args:
        path: A `decoder.yml`. Without one the search is greedy, which is how
            students are used.

    Returns:
        Default search options of an export.

    Raises:
        UserError: If the file is not YAML, or an option is not supported.
    """
    if path is None:
        return {"beam_size": 1, "length_penalty": 1.0, "penalty_offset": 0}
    found = read_yaml(path.read_bytes(), str(path))
    check_values(found, SUPPORTED_SEARCH_VALUES, str(path))
    models = found.get("models")
    if isinstance(models, list) and len(models) > 1:
        wanted = "one model: an ensemble is not supported"
        raise config_error(str(path), "models", wanted, models)
    # Marian's defaults are 12 beams, and scores that are not normalized.
    beams = found.get("beam-size", 12)
    if type(beams) is not int or not 1 <= beams < 1_000:
        raise config_error(str(path), "beam-size", "an int from 1 on", beams)
    power = found.get("normalize", 0)
    if type(power) not in (int, float) or not 0 <= power < math.inf:
        raise config_error(str(path), "normalize", "a number", power)
    return {"beam_size": beams, "length_penalty": float(power), "penalty_offset": 0}
