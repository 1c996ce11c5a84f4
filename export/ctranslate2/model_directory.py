"""Writes a trained model as a CTranslate2 directory.

CTranslate2 is a C++ inference engine for Transformers. Its `TransformerSpec`
names the weights; this package fills it. Probabilities are equal. CTranslate2
runs its own beam search, which differs from ours in four rules:

* A finished hypothesis frees its place in the beam. In our search the place
  stays empty. So with more than one beam either search may find a better
  hypothesis.
* The search stops when the most probable continuation of all is EOS and `2 K`
  hypotheses are finished. Our search stops when no active hypothesis can win.
* At the length limit it finishes the `K` best continuations. Our search
  finishes the `K` beams.
* The probability of forbidden tokens is distributed over the other tokens.
"""

import json
import pathlib

from command_line.errors import UserError
from export.bundle.file_layout import (
    CTRANSLATE2_MODEL,
    TARGET_TOKENIZER_FILE,
    TOKENIZER_FILE,
)
from export.bundle.versions import new_version
from export.ctranslate2.spec import ACTIVATIONS, make_spec
from export.model.search import SearchSettings
from keras_transformer import Transformer
from keras_transformer.special_ids import BOS_ID, PADDING_ID

SETTINGS_FILE = "search.json"
END = "</s>"
UNUSED = "unused "  # Pieces contain no space.


def import_libraries():
    """Returns the modules `ctranslate2` and `sentencepiece`."""
    try:
        import ctranslate2
        import sentencepiece
    except ImportError as error:
        raise UserError(
            "the format ctranslate2 needs `pip install ctranslate2 "
            f"sentencepiece`. Received: {error}"
        ) from None
    return ctranslate2, sentencepiece


def write_ctranslate2(
    transformer: Transformer,
    protos: tuple[bytes, bytes | None],
    settings: SearchSettings,
    precision: str,
    export_dir: pathlib.Path,
    version: int | None = None,
) -> pathlib.Path:
    """Writes the model, its tokenizers and the settings of the search.

    Args:
        transformer: A built `Transformer`.
        protos: Bytes of the SentencePiece model of sources, and of that of
            targets, or `None` if they share one.
        settings: Settings of the search.
        precision: `"float32"`, or `"int8"` for the weights of linear maps and
            embeddings, which are multiplied as integers.
        export_dir: Folder of the versions.
        version: Int, the folder's name; `None` takes the next number.

    Raises:
        UserError: If CTranslate2 is not installed or does not support the model.
    """
    _, sentencepiece = import_libraries()
    architecture = transformer.architecture
    if architecture.decoder_mixer != "attention":
        raise UserError(
            "--format must be saved_model for a decoder without self-attention, "
            f"which CTranslate2 lacks. Received: {architecture.decoder_mixer}"
        )
    if parts := transformer.custom_parts():
        raise UserError(
            "--format must be saved_model for a model that replaces parts of "
            f"Transformer. Received: {', '.join(parts)} of "
            f"{type(transformer).__name__}"
        )
    if transformer.get_config().get("quantized"):
        raise UserError(
            "--format must be saved_model for a model that `quantize` has "
            "changed. Received: --format ctranslate2"
        )
    if architecture.activation not in ACTIVATIONS:
        raise UserError(
            f"activation must be one of {', '.join(ACTIVATIONS)} in a model "
            f"for CTranslate2. Received: {architecture.activation}"
        )
    source, target = protos[0], protos[1] or protos[0]
    vocabularies = [
        list_pieces(
            sentencepiece.SentencePieceProcessor(model_proto=proto),
            embedding.vocabulary_size,
        )
        for proto, embedding in (
            (source, transformer.embedding_of_sources),
            (target, transformer.embedding),
        )
    ]
    pieces = vocabularies[1]
    length = transformer.sequence_length
    search = {
        "beam_size": settings.beam_size,
        "length_penalty": settings.length_penalty,
        "penalty_offset": settings.penalty_offset,
        "max_extra_length": settings.max_extra_length,
        "max_source_length": length,
        "forbidden": [
            *(pieces[PADDING_ID], pieces[BOS_ID]),
            *(piece for piece in pieces if piece.startswith(UNUSED)),
        ],
    }
    if architecture.positions == "sine":
        length += settings.max_extra_length
    search["max_target_length"] = length
    spec = make_spec(transformer, vocabularies, length)

    with new_version(export_dir, CTRANSLATE2_MODEL, version) as (folder, part):
        spec.validate()
        spec.optimize(quantization=precision)
        spec.save(str(part))
        (part / TOKENIZER_FILE).write_bytes(source)
        if target != source:
            (part / TARGET_TOKENIZER_FILE).write_bytes(target)
        (part / SETTINGS_FILE).write_text(json.dumps(search, indent=2))
    return folder


def list_pieces(tokenizer, size: int) -> list[str]:
    """Returns the subwords of the ids 0 to `size - 1`."""
    pieces = [tokenizer.id_to_piece(i) for i in range(len(tokenizer))]
    return pieces + [f"{UNUSED}{i}" for i in range(len(pieces), size)]


def read_tokenizers(folder: pathlib.Path) -> list[bytes]:
    """Returns the SentencePiece models of sources and of targets."""
    source, target = folder / TOKENIZER_FILE, folder / TARGET_TOKENIZER_FILE
    last = target if target.exists() else source
    return [source.read_bytes(), last.read_bytes()]
