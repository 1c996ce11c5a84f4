"""Reads `config.json` and related files of Hugging Face's models."""

import dataclasses
import pathlib

from convert.checked_options import CheckedOptions, read_json
from convert.marian_config import max_wavelength
from keras_transformer import Architecture

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
EPSILON = 1e-5  # PyTorch's default, which no configuration changes.
# Values that the configuration must have, or omit; others mean a computation
# that is not supported.
MUST_BE = {
    "is_encoder_decoder": True,
    "tie_word_embeddings": True,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 0,
}
# Defaults of `M2M100Config`.
M2M_100 = {"activation_function": "relu", "scale_embedding": True}
M2M_100 |= {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
# Languages of M2M-100's tokenizer; their tags follow its vocabulary.
LANGUAGES = """
    af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy
    ga gd gl gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo
    lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq
    sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu
"""
# Values of search options, for which `None` is the other supported value.
SEARCH_MUST_BE = {
    "do_sample": False,
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
    """Content of `config.json`, as far as it is needed, with their ids."""

    architecture: Architecture
    vocabulary_size: int  # Rows of the embedding matrix of targets.
    source_vocabulary_size: int
    shares_matrix: bool  # Whether both sides share one.
    padding_id: int
    eos_id: int
    bos_id: int  # Begins a target.
    sequence_length: int
    has_tags: bool  # Of languages, as M2M-100 and NLLB.


def read_architecture(options: CheckedOptions) -> Architecture:
    for key in ("_attention_heads", "_ffn_dim"):
        options.both(key)
    return Architecture(
        num_layers=options.number("encoder_layers"),
        decoder_layers=options.number("decoder_layers"),
        **options.heads("d_model", "encoder_attention_heads"),
        intermediate_dim=options.number("encoder_ffn_dim"),
        dropout=options.found.get("dropout", 0.1),
        use_bias=True,
        activation=options.choice("activation_function", ACTIVATIONS, "gelu"),
        scale_embedding=options.switch("scale_embedding", False),
        logits_bias=True,
        norm_epsilon=EPSILON,
    )


def read_configuration(path: pathlib.Path) -> Configuration:
    """Reads `config.json`."""
    options = CheckedOptions(read_json(path), path)
    types = {"marian": False, "m2m_100": True}
    has_tags = options.choice("model_type", types, "marian")
    if has_tags:
        options.found = {**M2M_100, **options.found}
    options.check(MUST_BE)
    architecture = read_architecture(options)
    size = options.number("vocab_size")
    shares = options.switch("share_encoder_decoder_embeddings", True)
    targets = options.number("decoder_vocab_size", default=size)
    if shares and targets != size:
        wanted = f"{size}, as vocab_size, for one matrix"
        raise options.error("decoder_vocab_size", wanted, targets)
    eos_id = options.number("eos_token_id", 0, targets, 0)
    options.check({"forced_eos_token_id": eos_id})
    padding_id = options.number("pad_token_id", 0, min(size, targets))
    if has_tags:
        architecture = dataclasses.replace(
            architecture,
            norm="pre",
            max_wavelength=max_wavelength(architecture.hidden_dim),
            position_offset=padding_id + 1,
        )
    return Configuration(
        architecture,
        targets,
        size,
        shares,
        padding_id,
        eos_id,
        options.number("decoder_start_token_id", 0, targets),
        options.number("max_position_embeddings", default=512),
        has_tags,
    )


def read_decoding(
    folder: pathlib.Path, has_tags: bool = False
) -> tuple[dict, list[int], bool]:
    """Reads the default search options.

    Also returns their ids that are never generated, and whether these are
    excluded from the softmax.
    """
    path = folder / "generation_config.json"
    path = path if path.exists() else folder / "config.json"
    options = CheckedOptions(read_json(path), path)
    options.check(SEARCH_MUST_BE)
    if not has_tags:  # Else it is a language, which a request gives.
        options.check({"forced_bos_token_id": None})
    words = options.found.get("bad_words_ids") or []
    try:
        forbidden = [int(id_) for (id_,) in words]
    except (TypeError, ValueError):
        raise options.error("bad_words_ids", "lists of one id each", words) from None
    beams = options.number("num_beams", 0, 1_000, 1)
    power = options.number("length_penalty", 0, 1_000, 1, (int, float))
    decoding = {
        "beam_size": max(1, beams),
        "length_penalty": float(power),
        "penalty_offset": 0,
    }
    return decoding, forbidden, bool(options.found.get("renormalize_logits"))


def read_language_codes(folder: pathlib.Path) -> list[str]:
    """Returns the languages of M2M-100, in the order of their tags."""
    path = folder / "tokenizer_config.json"
    found = read_json(path) if path.exists() else {}
    CheckedOptions(found, path).check({"language_codes": "m2m100"})
    return LANGUAGES.split()
