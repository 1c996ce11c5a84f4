"""Reads the configuration of a model of Marian, and its search options.

A model holds all options of Marian that change its computation. Each must be
known here, with a value that is computed; any other is refused.
"""

import pathlib
from typing import Any

import yaml

from command_line.errors import UserError, first_line
from convert.checked_options import CheckedOptions
from keras_transformer import Architecture

# Its gelu is x times sigmoid(1.702 x), which is not supported.
ACTIVATIONS = {"relu": "relu", "swish": "swish"}
# Options with the values that are computed; the first is Marian's default.
SUPPORTED_VALUES = {
    "type": "transformer",
    "transformer-preprocess": ("", "d"),  # "d" is dropout.
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("", "d"),
    "transformer-ffn-depth": 2,
    "transformer-attention-mask": "default",
    "lemma-dependency": "",
    "factors-combine": "sum",
}
MUST_BE_FALSE = """
    alibi input-join-fields layer-normalization output-omit-bias right-left
    transformer-alibi-shift transformer-alibi-trainable
    transformer-disable-position-embeddings transformer-no-affine
    transformer-no-bias transformer-no-projection transformer-pool
    transformer-rnn-projection transformer-train-position-embeddings
    transformer-train-positions ulr ulr-trainable-transformation
"""
MUST_BE_ZERO = """
    factors-dim-emb lemma-dim-emb transformer-decoder-dim-ffn
    transformer-decoder-ffn-depth ulr-dim-emb
"""
MUST_BE_EMPTY = "input-reorder input-types output-approx-knn transformer-tied-layers"
SUPPORTED_VALUES |= dict.fromkeys(MUST_BE_FALSE.split(), False)
SUPPORTED_VALUES |= dict.fromkeys(MUST_BE_ZERO.split(), 0)
SUPPORTED_VALUES |= dict.fromkeys(MUST_BE_EMPTY.split(), ([],))
# Options that `read_architecture` reads; then those of other types of models
# and of training, and sizes that the tensors have.
OTHER_OPTIONS = """
    dec-cell dec-depth dim-emb enc-depth transformer-decoder-autoreg
    transformer-dim-ffn transformer-dropout transformer-ffn-activation
    transformer-heads

    bert-class-symbol bert-mask-symbol bert-masking-fraction bert-sep-symbol
    bert-train-type-embeddings bert-type-vocab-size best-deep
    dec-cell-base-depth dec-cell-high-depth dim-rnn dim-vocabs dropout-rnn
    dropout-src dropout-trg enc-cell enc-cell-depth enc-type original-type
    separator-symbol skip special-vocab tied-embeddings tied-embeddings-all
    tied-embeddings-src transformer-aan-activation transformer-aan-depth
    transformer-aan-nogate transformer-depth-scaling transformer-dim-aan
    transformer-dropout-attention transformer-dropout-ffn
    transformer-guided-alignment-layer ulr-dropout ulr-keys-vectors
    ulr-query-vectors ulr-softmax-temperature version
"""
# Search options with the values that are computed, and Marian's default first.
SUPPORTED_SEARCH_VALUES = {
    "word-penalty": 0,
    "output-sampling": ([], False),
    "force-decode": False,
    "allow-unk": False,
}


def read_configuration(text: bytes, path: pathlib.Path) -> CheckedOptions:
    options = read_yaml(text, f"the configuration of {path}")
    known = {*SUPPORTED_VALUES, *OTHER_OPTIONS.split()}
    for key, value in options.found.items():
        if value is not None and key not in known:
            raise options.error(key, "absent: its effect is not known", value)
    options.check(SUPPORTED_VALUES)
    return options


def read_yaml(text: bytes, where: str) -> CheckedOptions:
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(
            f"{where} must be YAML. Received: {first_line(error)}"
        ) from None
    if not isinstance(found, dict):
        raise UserError(f"{where} must be a YAML mapping")
    return CheckedOptions(found, where)


def read_architecture(options: CheckedOptions, **others: Any) -> Architecture:
    """Reads the hyperparameters; `others` are those that it does not give."""
    mixers = {"self-attention": "attention", "rnn": "ssru"}
    mixer = options.choice("transformer-decoder-autoreg", mixers, "self-attention")
    if mixer == "ssru":
        options.choice("dec-cell", {"ssru": "ssru"}, "gru")
    heads = options.heads("dim-emb", "transformer-heads")
    return Architecture(
        num_layers=options.number("enc-depth"),
        decoder_layers=options.number("dec-depth"),
        **heads,
        intermediate_dim=options.number("transformer-dim-ffn"),
        dropout=options.found.get("transformer-dropout", 0.0),
        use_bias=True,
        activation=options.choice("transformer-ffn-activation", ACTIVATIONS, "swish"),
        logits_bias=True,
        max_wavelength=max_wavelength(heads["hidden_dim"]),
        decoder_mixer=mixer,
        **others,
    )


def max_wavelength(width: int) -> float:
    """Returns the `max_wavelength` of Marian's sines.

    They have frequencies from 1 to 1/10000, the last included, which the paper
    excludes.
    """
    return float(10_000 ** (width / (width - 2)))


def read_search_options(model: pathlib.Path) -> dict:
    """Reads the search options beside a model.

    Marian writes `model.npz.decoder.yml`; OPUS-MT's downloads hold
    `decoder.yml`. Without one the search is greedy, as of students.
    """
    beams, power = 1, 1.0
    for name in (f"{model.name}.decoder.yml", "decoder.yml"):
        path = model.with_name(name)
        if not path.is_file():
            continue
        options = read_yaml(path.read_bytes(), str(path))
        options.check(SUPPORTED_SEARCH_VALUES)
        models = options.found.get("models")
        if isinstance(models, list) and len(models) > 1:
            wanted = "one model: an ensemble is not supported"
            raise options.error("models", wanted, models)
        # Marian's defaults are 12 beams, and scores that are not normalized.
        beams = options.number("beam-size", below=1_000, default=12)
        power = options.number("normalize", 0, default=0, kind=(int, float))
        break
    return {"beam_size": beams, "length_penalty": float(power), "penalty_offset": 0}
