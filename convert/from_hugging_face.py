"""Reads Hugging Face's `MarianMTModel` (OPUS-MT), M2M-100 and NLLB-200."""

import pathlib
import re

import numpy as np

from command_line.errors import UserError, refuse_damage
from convert.checked_options import CheckedOptions, read_json
from convert.hugging_face_config import (
    Configuration,
    read_configuration,
    read_decoding,
    read_language_codes,
)
from convert.run_folder_writer import Converted, read_licenses
from convert.tensor_files import Tensors, open_safetensors
from convert.vocabularies import (
    OTHER_BOS,
    Vocabulary,
    check_ids,
    make_vocabularies,
    make_vocabulary,
    pieces_of,
    read_proto,
    read_protos,
    replace_ids,
)
from convert.weight_mapping import make_model
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID, UNKNOWN_ID
from text_processing.language_tags import LanguageTags
from train.data.given_tokenizer import PIECE

BIAS = "final_logits_bias"
SOURCE_TABLE = "model.encoder.embed_tokens.weight"
# Copies of the matrix of targets; the first exists where both sides share it.
TABLES = (
    *("model.shared.weight", "model.decoder.embed_tokens.weight"),
    "lm_head.weight",
)
# Their names of the parts of a path; see `weight_mapping`.
NAMES = {
    **dict.fromkeys(("attention", "self_attention"), "self_attn."),
    "attention_residual": "self_attn_layer_norm.",
    "self_attention_residual": "self_attn_layer_norm.",
    "memory_attention": "encoder_attn.",
    "memory_attention_residual": "encoder_attn_layer_norm.",
    "feed_forward": "",
    "feed_forward_residual": "final_layer_norm.",
    **{"query": "q_proj.", "key": "k_proj.", "value": "v_proj."},
    **{"output": "out_proj.", "expand": "fc1.", "contract": "fc2."},
    **{"normalization": "", "gamma": "weight", "beta": "bias"},
    **{"kernel": "weight", "bias": "bias"},
}

# A tag of M2M-100 around its code, or one of NLLB-200, which is the code.
TAG = re.compile(r"__(\w+)__|[a-z]{3}_[A-Z][a-z]{3}")
# The first pieces of NLLB-200, before those of its SentencePiece model.
FIRST_PIECES = ("<s>", "<pad>", "</s>", "<unk>")


def tensor_name_of(path: tuple[str, ...]) -> str:
    """Returns the name of the tensor that a weight of a layer is."""
    stack, layer, *rest = path
    if layer == "normalization":  # At the end of a pre-norm stack.
        return f"model.{stack}.layer_norm.{NAMES[rest[0]]}"
    number = layer.removeprefix("layer_")
    return f"model.{stack}.layers.{number}.{''.join(NAMES[name] for name in rest)}"


def read(folder: pathlib.Path) -> Converted:
    configuration = read_configuration(folder / "config.json")
    tensors = open_weights(folder)
    languages = None
    if configuration.has_tags:
        targets, proto, languages = read_tagged_vocabulary(folder, configuration)
        sources, tokenizers = targets, [proto, proto]
    else:
        sources, targets, *tokenizers = read_vocabularies(folder, configuration)
    decoding, forbidden, renormalizes = read_decoding(folder, configuration.has_tags)
    if renormalizes and not configuration.has_tags:
        forbidden = [*forbidden, configuration.bos_id]
    else:  # Their softmax includes the begin token, which is never generated.
        forbidden = [id_ for id_ in forbidden if id_ != configuration.bos_id]
    targets.can_be_generated[np.isin(targets.rows, forbidden)] = False
    tables = find_tables(tensors, configuration)

    def take_table(which: str) -> np.ndarray:
        if which == "bias" and configuration.has_tags:
            return np.zeros(configuration.vocabulary_size)
        return tensors.take(tables[which])

    def take_weight(path: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray:
        return tensors.take(tensor_name_of(path), shape[::-1]).T

    model = make_model(
        configuration.architecture,
        tensors,
        (sources, targets),
        shares=configuration.shares_matrix,
        sequence_length=configuration.sequence_length,
        take_table=take_table,
        take_weight=take_weight,
    )
    return Converted(model, *tokenizers, decoding, read_licenses(folder), languages)


def find_tables(tensors: Tensors, configuration: Configuration) -> dict[str, str]:
    """Returns the names of the matrices and of the bias, whose shapes it checks."""
    # Copies of a matrix that is read, and the computed position encodings.
    positions = [f"model.{s}.embed_positions.weight" for s in ("encoder", "decoder")]
    tensors.ignore(*TABLES, SOURCE_TABLE, *positions, *(f"{p}s" for p in positions))
    shares = configuration.shares_matrix
    names = TABLES if shares else TABLES[1:]
    table = next((name for name in names if name in tensors), names[0])
    width = configuration.architecture.hidden_dim
    tensors.check(table, (configuration.vocabulary_size, width))
    if not shares:
        tensors.check(SOURCE_TABLE, (configuration.source_vocabulary_size, width))
    if not configuration.has_tags:
        tensors.check(BIAS, (1, configuration.vocabulary_size))
    return {"source": SOURCE_TABLE, "target": table, "bias": BIAS}


def open_weights(folder: pathlib.Path) -> Tensors:
    path = folder / "model.safetensors"
    if path.exists():
        return open_safetensors(path)
    if (folder / "pytorch_model.bin").exists():
        raise UserError(
            f"--model-dir must hold {path.name}; pytorch_model.bin is a "
            "pickle, which may run anything. Where you trust it: python -c "
            '"import transformers as t; t.AutoModelForSeq2SeqLM.from_pretrained('
            f"'{folder}').save_pretrained('{folder}')\""
        )
    raise UserError(f"--model-dir must hold {path.name}. Received: {folder}")


def read_vocabularies(
    folder: pathlib.Path, configuration: Configuration
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Returns the vocabularies of sources and targets, and their tokenizers."""
    protos = read_protos([folder / "source.spm", folder / "target.spm"])
    sizes = (configuration.source_vocabulary_size, configuration.vocabulary_size)
    paths = [folder / "vocab.json", folder / "target_vocab.json"]
    path = folder / "tokenizer_config.json"
    shares = configuration.shares_matrix
    is_separate = not shares and paths[1].exists()
    if path.exists():
        is_separate = bool(read_json(path).get("separate_vocabs", is_separate))
    if shares and is_separate:
        raise UserError(
            f"separate_vocabs of {path} must be false for one matrix. Received: true"
        )
    if not is_separate:
        paths[1] = paths[0]
    tables = [
        check_ids(read_json(path), size, path)
        for path, size in zip(paths, sizes, strict=True)
    ]
    specials = [
        find_specials(table, configuration, path, begins)
        for table, path, begins in zip(tables, paths, (shares, True), strict=True)
    ]
    return make_vocabularies(protos, tables, specials, shares)


def read_tagged_vocabulary(
    folder: pathlib.Path, configuration: Configuration
) -> tuple[Vocabulary, bytes, LanguageTags]:
    """Returns the vocabulary of M2M-100 or NLLB-200, its tokenizer and its tags."""
    path = folder / "sentencepiece.bpe.model"
    proto = read_proto(path)
    pieces = dict.fromkeys((*FIRST_PIECES, *(piece.piece for piece in proto.pieces)))
    table = {piece: id_ for id_, piece in enumerate(pieces)}
    added = read_added_tokens(folder)
    if (folder / "vocab.json").exists():  # M2M-100.
        path = folder / "vocab.json"
        table = read_json(path)
        codes = enumerate(read_language_codes(folder), len(table))
        added |= {f"__{code}__": (id_, True) for id_, code in codes}
    matches = [match for token in added if (match := TAG.fullmatch(token))]
    tags = {match[1] or match[0]: match[0] for match in matches}
    if not tags:
        raise UserError(
            "--model-dir must hold a tokenizer.json with the codes of languages. "
            f"Received: {folder}, without them"
        )
    size = configuration.vocabulary_size
    table |= {token: id_ for token, (id_, _) in added.items()}
    table = check_ids(table, size, path)
    specials = find_specials(table, configuration, path, begins=False)
    if BOS_ID not in specials and "<s>" in table:
        table[OTHER_BOS] = table.pop("<s>")
    # Rows of a matrix that is padded.
    rest = {f"madeupword{i}": i for i in set(range(size)).difference(table.values())}
    vocabulary = make_vocabulary({**table, **rest}, specials, pieces_of(proto))
    # Not generated: its logit would be that of the token with which targets begin.
    vocabulary.rows[BOS_ID] = configuration.bos_id
    types = dict.fromkeys((OTHER_BOS, *rest), PIECE.CONTROL)
    for token, (_, is_special) in added.items():
        types[token] = PIECE.CONTROL if is_special else PIECE.USER_DEFINED
    proto = replace_ids(proto, vocabulary.pieces, types=types)
    return vocabulary, proto, LanguageTags(tags, tags, is_forced=True)


def read_added_tokens(folder: pathlib.Path) -> dict[str, tuple[int, bool]]:
    """Returns the tokens that are not in the SentencePiece model.

    Each has its id, and whether it is never part of a text.
    """
    found = {}
    for name in ("tokenizer_config.json", "tokenizer.json"):
        path = folder / name
        content = read_json(path) if path.exists() else {}
        CheckedOptions(content, path).check({"legacy_behaviour": False})
        with refuse_damage(path):
            decoder = content.get("added_tokens_decoder", {})
            tokens = [*content.get("added_tokens", [])]
            tokens += [{**token, "id": int(id_)} for id_, token in decoder.items()]
            found |= {t["content"]: (t["id"], t["special"]) for t in tokens}
    return found


def find_specials(
    table: dict[str, int], configuration: Configuration, path: pathlib.Path, begins
) -> dict[int, int]:
    """Returns their ids of our special pieces.

    Sources have BOS only if their table has it, or is that of targets.
    """
    if "<unk>" not in table:
        raise UserError(f"{path} must hold the piece <unk>")
    specials = {EOS_ID: configuration.eos_id, UNKNOWN_ID: table["<unk>"]}
    bos_id = configuration.bos_id
    if begins or table.get("<s>") == bos_id:
        specials[BOS_ID] = bos_id
    if not begins or configuration.padding_id != bos_id:
        specials[PADDING_ID] = configuration.padding_id
    return specials
