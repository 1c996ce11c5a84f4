"""Reads `config.json` and related files of a `MarianMTModel`."""

import dataclasses
import pathlib
import reprlib

import numpy as np

from command_line.errors import UserError
from convert.tensor_files import read_json
from keras_transformer import Architecture

ACTIVATIONS = {
    **{"relu": "relu", "gelu": "gelu"},
    **{"swish": "swish", "silu": "swish"},
}
EPSILON = 1e-5  # PyTorch's default, which no configuration changes.
# Values that the configuration must have, or omit; others mean a computation
# that is not supported.
MUST_BE = {
    "model_type": "marian",
    "is_encoder_decoder": True,
    "tie_word_embeddings": True,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 0,
}
# The same for search options.
SEARCH_MUST_BE = {
    "do_sample": False,
    "forced_bos_token_id": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "min_length": 0,
    "num_beam_groups": 1,
}


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Content of `config.json`, as far as it is needed.

    Attributes:
        architecture: The hyperparameters of the model.
        vocabulary_size: Int, rows of the embedding matrix of targets.
        source_vocabulary_size: Int, rows of that of sources.
        shares_matrix: Bool, whether both sides share one matrix.
        padding_id: Int, their id of padding.
        eos_id: Int, their id of EOS.
        bos_id: Int, their id that begins a target.
        sequence_length: Int, maximum number of positions.
    """

    architecture: Architecture
    vocabulary_size: int
    source_vocabulary_size: int
    shares_matrix: bool
    padding_id: int
    eos_id: int
    bos_id: int
    sequence_length: int


class ConfigReader:
    """Reads and checks the entries of a `config.json`.

    Attributes:
        found: Dict, the content of the file.
    """

    def __init__(self, path: pathlib.Path):
        self._path = path
        self.found = read_json(path)
        check_values(path, self.found, MUST_BE)

    def number(
        self, key: str, least: int = 1, below: float = np.inf, default=None
    ) -> int:
        value = self.found.get(key)
        value = default if value is None else value
        if type(value) is not int or not least <= value < below:
            most = f", below {below:,}" if below < np.inf else ""
            raise self.config_error(key, f"an int from {least} on{most}", value)
        return value

    def switch(self, key: str, default: bool) -> bool:
        value = self.found.get(key, default)
        if type(value) is not bool:
            raise self.config_error(key, "true or false", value)
        return value

    def common(self, key: str) -> int:
        """Returns a number that must be the same for both stacks."""
        one = self.number(f"encoder_{key}")
        other = self.number(f"decoder_{key}")
        if one != other:
            wanted = f"{one}, as encoder_{key}"
            raise self.config_error(f"decoder_{key}", wanted, other)
        return one

    def config_error(self, key: str, wanted: str, value) -> UserError:
        return config_error(self._path, key, wanted, value)


def read_architecture(config: ConfigReader) -> Architecture:
    """Reads the hyperparameters of the model."""
    activation = config.found.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        wanted = f"one of {', '.join(ACTIVATIONS)}"
        raise config.config_error("activation_function", wanted, activation)
    heads, inner = config.common("attention_heads"), config.common("ffn_dim")
    width = config.number("d_model")
    if width % heads or width % 2:
        wanted = f"even, and a multiple of the {heads} heads"
        raise config.config_error("d_model", wanted, width)
    return Architecture(
        num_layers=config.number("encoder_layers"),
        decoder_layers=config.number("decoder_layers"),
        hidden_dim=width,
        intermediate_dim=inner,
        num_heads=heads,
        key_dim=width // heads,
        value_dim=width // heads,
        dropout=config.found.get("dropout", 0.1),
        use_bias=True,
        activation=ACTIVATIONS[activation],
        scale_embedding=config.switch("scale_embedding", False),
        logits_bias=True,
        norm_epsilon=EPSILON,
    )


def read_configuration(path: pathlib.Path) -> Configuration:
    """Reads `config.json`.

    Raises:
        UserError: At an unsupported entry, with key and value.
    """
    config = ConfigReader(path)
    architecture = read_architecture(config)
    size = config.number("vocab_size")
    shares = config.switch("share_encoder_decoder_embeddings", True)
    targets = config.number("decoder_vocab_size", default=size)
    if shares and targets != size:
        wanted = f"{size}, as vocab_size, for one matrix"
        raise config.config_error("decoder_vocab_size", wanted, targets)
    end = config.number("eos_token_id", 0, targets, 0)
    least = min(size, targets)
    if config.found.get("forced_eos_token_id", end) not in (None, end):
        wanted = f"{end}, as eos_token_id"
        value = config.found["forced_eos_token_id"]
        raise config.config_error("forced_eos_token_id", wanted, value)
    return Configuration(
        architecture,
        targets,
        size,
        shares,
        config.number("pad_token_id", 0, least),
        end,
        config.number("decoder_start_token_id", 0, targets),
        config.number("max_position_embeddings", default=512),
    )


def check_values(path: pathlib.Path, found: dict, must_be: dict) -> None:
    """Refuses entries with values that are not supported."""
    for key, wanted in must_be.items():
        if found.get(key) not in (None, wanted):
            raise config_error(path, key, repr(wanted), found[key])


def config_error(path: pathlib.Path, key: str, wanted: str, value) -> UserError:
    return UserError(
        f"{key} of {path} must be {wanted}. Received: {reprlib.repr(value)}"
    )


def read_decoding(folder: pathlib.Path) -> tuple[dict, list[int], bool]:
    """Reads the default search options.

    Returns:
        Options of an export; their ids that are never generated; and whether
        these are excluded from the softmax.

    Raises:
        UserError: At an unsupported option, with key and value.
    """
    path = folder / "generation_config.json"
    path = path if path.exists() else folder / "config.json"
    found = read_json(path)
    check_values(path, found, SEARCH_MUST_BE)
    values = {}
    kinds = {"num_beams": int, "length_penalty": (int, float)}
    for key, kind in kinds.items():
        value = found.get(key)
        value = 1 if value is None else value
        if not isinstance(value, kind) or not 0 <= value < 1_000:
            raise config_error(path, key, "a number", value)
        values[key] = value
    words = found.get("bad_words_ids") or []
    try:
        forbidden = [int(id_) for (id_,) in words]
    except (TypeError, ValueError):
        wanted = "lists of one id each"
        raise config_error(path, "bad_words_ids", wanted, words) from None
    decoding = {
        "beam_size": max(1, values["num_beams"]),
        "length_penalty": float(values["length_penalty"]),
        "penalty_offset": 0,
    }
    return decoding, forbidden, bool(found.get("renormalize_logits"))
