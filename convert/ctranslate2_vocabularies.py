"""Reads the vocabularies of a CTranslate2 directory."""

import dataclasses
import json
import pathlib

from command_line.errors import UserError
from convert.tensor_files import Tensors
from convert.vocabularies import (
    Vocabulary,
    find_language_codes,
    make_vocabulary,
    pieces_of,
    read_protos,
    replace_ids,
)
from export.ctranslate2.model_directory import (
    TARGET_TOKENIZER_FILE,
    TOKENIZER_FILE,
    UNUSED,
)
from keras_transformer.masks import BOS_ID, EOS_ID, PADDING_ID
from keras_transformer.tokenizer import UNKNOWN_ID

OTHER_BOS = "[<s>]"  # A `<s>` with which no target begins.
SIDES = {"source": "encoder/embeddings_0/weight", "target": "decoder/embeddings/weight"}


def read_vocabularies(
    folder: pathlib.Path,
    paths: list[pathlib.Path] | None,
    tensors: Tensors,
    config: dict,
    begins_with_zero: bool,
) -> tuple[Vocabulary, Vocabulary, bytes, bytes]:
    """Reads the vocabularies of sources and targets, and their tokenizers.

    Args:
        folder: The directory.
        paths: SentencePiece models, one for both sides or one each; `None`
            means those that `export` writes.
        tensors: The tensors of the model.
        config: Dict, the content of `config.json`.
        begins_with_zero: Bool, whether targets begin with a vector of zeros.

    Raises:
        UserError: If a file is damaged, or not the model's.
    """
    if paths is None:
        paths = [folder / TOKENIZER_FILE]
        if not paths[0].exists():
            raise UserError(
                "--vocabulary must be given for a directory that `python -m "
                f"export` did not write. Received: none, for {folder}"
            )
        if (folder / TARGET_TOKENIZER_FILE).exists():
            paths.append(folder / TARGET_TOKENIZER_FILE)
    protos = read_protos(paths)
    tables = [read_pieces(folder, side, tensors) for side in SIDES]
    used = [pieces_of(proto) for proto in protos]
    if tables[0] == tables[1]:
        used = 2 * [used[0] + used[1]]
    vocabularies, tokenizers = [], []
    for proto, table, pieces in zip(protos, tables, used, strict=True):
        ours = arrange_vocabulary(folder, table, pieces, config, begins_with_zero)
        vocabularies.append(ours)
        # Ids beyond the tokenizer, which an export never chooses.
        named = [piece for piece in ours.pieces if not piece.startswith(UNUSED)]
        known = dataclasses.replace(ours, pieces=named)
        codes = find_language_codes(named)
        tokenizers.append(replace_ids(proto, known, codes))
    return *vocabularies, *tokenizers


def read_pieces(folder: pathlib.Path, side: str, tensors: Tensors) -> dict[str, int]:
    """Reads the ids of the pieces of a side."""
    path = folder / "shared_vocabulary.json"
    if not path.exists():
        path = folder / f"{side}_vocabulary.json"
    try:
        pieces = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"--model-dir must hold {path.name}. Received: {folder}"
        ) from None
    except (ValueError, RecursionError):
        pieces = None
    if not isinstance(pieces, list) or not all(
        isinstance(piece, str) for piece in pieces
    ):
        raise UserError(f"{path} must hold a JSON array of strings")
    if len(set(pieces)) < len(pieces):
        raise UserError(f"{path} must hold each piece once")
    name = SIDES[side]
    rows = tensors.shapes.get(name, (0, 0))[0]
    if len(pieces) != rows:
        raise UserError(
            f"{path} must be that of the model, whose {name} has {rows:,} "
            f"rows. Received: {len(pieces):,} pieces"
        )
    return {piece: id_ for id_, piece in enumerate(pieces)}


def arrange_vocabulary(
    folder: pathlib.Path,
    table: dict[str, int],
    used: list[str],
    config: dict,
    begins_with_zero: bool,
) -> Vocabulary:
    """Reorders the pieces for our ids."""
    keys = {"eos_token": "</s>", "unk_token": "<unk>"}
    if not begins_with_zero:
        keys["decoder_start_token"] = "<s>"
    tokens = [config.get(key, default) for key, default in keys.items()]
    for key, token in zip(keys, tokens, strict=True):
        if not isinstance(token, str) or token not in table:
            raise UserError(
                f"{key} of {folder / 'config.json'} must be in the vocabulary. "
                f"Received: {token!r}"
            )
    eos, unknown, *start = (table[token] for token in tokens)
    specials = {EOS_ID: eos, UNKNOWN_ID: unknown}
    if "<pad>" in table:
        specials[PADDING_ID] = table["<pad>"]
    table = dict(table)
    if start == [table.get("<s>")]:
        specials[BOS_ID] = table["<s>"]
    elif "<s>" in table:  # Targets begin with another one.
        table[OTHER_BOS] = table.pop("<s>")
    vocabulary = make_vocabulary(table, specials, used)
    if start and BOS_ID not in specials:
        # Not generated: its logit would be that of the other token.
        vocabulary.rows[BOS_ID] = start[0]
    return vocabulary
