"""Writes a trained model as a CTranslate2 directory.

CTranslate2 is a C++ inference engine for Transformers. Its `TransformerSpec`
names the weights; this package fills it. Probabilities are equal. CTranslate2
runs its own beam search, whose rules differ:

* A finished hypothesis frees its place in the beam. In our search the place
  stays empty. So with more than one beam either search may find a better
  hypothesis.
* The search stops when the most probable continuation of all is EOS and `2 K`
  hypotheses are finished. Our search stops when no active hypothesis can win.
* At the length limit it finishes the `K` best continuations. Our search
  finishes the `K` beams.
* The probability of forbidden tokens is distributed over the other tokens.
"""

import dataclasses
import pathlib

from command_line.errors import UserError, require_extra
from command_line.text_files import write_json
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
from text_processing.language_tags import LanguageTags

SETTINGS_FILE = "search.json"
END = "</s>"
UNUSED = "unused "  # Pieces contain no space.


def import_libraries():
    """Returns the modules `ctranslate2` and `sentencepiece`."""
    with require_extra("the format ctranslate2", "ctranslate2"):
        import ctranslate2
        import sentencepiece
    return ctranslate2, sentencepiece


def write_ctranslate2(
    transformer: Transformer,
    protos: tuple[bytes, bytes | None],
    settings: SearchSettings,
    precision: str,
    export_dir: pathlib.Path,
    version: int | None = None,
    languages: LanguageTags | None = None,
) -> pathlib.Path:
    """Writes the model, its tokenizers and the settings of the search.

    `protos` are the SentencePiece models of sources and of targets, the second
    `None` if they share one. The precision is `"float32"`, or `"int8"` for linear
    maps and embeddings. The version `None` takes the next number; the `languages` are
    those of `read_languages`.

    Raises:
        UserError: If CTranslate2 is not installed or does not support the model.
    """
    import_libraries()  # Before the work.
    check_model(transformer)
    source, target = protos[0], protos[1] or protos[0]
    sources = list_pieces(source, transformer.embedding_of_sources.vocabulary_size)
    pieces = list_pieces(target, transformer.embedding.vocabulary_size)
    unused = [piece for piece in pieces if piece.startswith(UNUSED)]
    length = transformer.sequence_length
    if transformer.architecture.positions == "sine":
        length += settings.max_extra_length
    names = "beam_size", "length_penalty", "penalty_offset", "max_extra_length"
    search = {
        **{name: getattr(settings, name) for name in names},
        "max_source_length": transformer.sequence_length,
        "max_target_length": length,
        "forbidden": [pieces[PADDING_ID], pieces[BOS_ID], *unused],
        "languages": languages and dataclasses.asdict(languages),
    }
    spec = make_spec(transformer, [sources, pieces], length)
    with new_version(export_dir, CTRANSLATE2_MODEL, version) as (folder, part):
        spec.validate()
        spec.optimize(quantization=precision)
        spec.save(str(part))
        (part / TOKENIZER_FILE).write_bytes(source)
        if target != source:
            (part / TARGET_TOKENIZER_FILE).write_bytes(target)
        write_json(part / SETTINGS_FILE, search)
    return folder


def check_model(transformer: Transformer) -> None:
    """Refuses a model that CTranslate2 does not support."""
    architecture = transformer.architecture
    lacking = []
    if architecture.decoder_mixer != "attention":
        lacking.append(f"a decoder of {architecture.decoder_mixer}")
    if parts := transformer.custom_parts():
        lacking.append(f"{', '.join(parts)} of {type(transformer).__name__}")
    if architecture.activation not in ACTIVATIONS:
        lacking.append(f"{architecture.activation}, none of {', '.join(ACTIVATIONS)}")
    if lacking:
        raise UserError(
            "--format must be saved_model for a model with what CTranslate2 lacks. "
            f"Received: {lacking[0]}"
        )


def list_pieces(proto: bytes, size: int) -> list[str]:
    """Returns the subwords of the ids 0 to `size - 1`."""
    _, sentencepiece = import_libraries()
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=proto)
    pieces = [tokenizer.id_to_piece(i) for i in range(len(tokenizer))]
    return pieces + [f"{UNUSED}{i}" for i in range(len(pieces), size)]


def read_tokenizers(folder: pathlib.Path) -> list[bytes]:
    """Returns the SentencePiece models of sources and of targets."""
    source, target = folder / TOKENIZER_FILE, folder / TARGET_TOKENIZER_FILE
    last = target if target.exists() else source
    return [source.read_bytes(), last.read_bytes()]
