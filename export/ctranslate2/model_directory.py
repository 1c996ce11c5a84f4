"""Writes and reads the trained model as a CTranslate2 directory.

CTranslate2 is a C++ program for Transformers on CPUs. Its `TransformerSpec`
names the weights that it wants, and gets ours. The probabilities are the same;
the search is its own. It finds what ours finds but for four rules:

* A hypothesis that ends makes room for another in the beam. Ours leaves its
  place empty, so with more than one beam either may find a better one.
* The search ends when the most likely continuation of all is an end, and
  `2 K` hypotheses have ended. Ours goes on until no other can win.
* At the limit it ends the `K` best continuations. Ours ends the `K` beams.
* The probability of symbols that are never chosen goes to the others.

Its own length penalty, `log p / n ** α`, need not be that of the SavedModel. So
it searches without one, and what it finds is ranked here by
`log p / ((k + n) / (k + 1)) ** α`: `α`, `k` and scores mean the same.
"""

import collections
import json
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from command_line.errors import UserError
from command_line.errors import refuse_damage
from export.bundle.versions import find_version
from export.bundle.versions import new_version
from export.ctranslate2.cpu_count import count_processors
from export.ctranslate2.spec import make_spec
from export.model.search import SearchSettings
from keras_transformer import Transformer
from keras_transformer.masks import BOS_ID
from keras_transformer.masks import PADDING_ID

MODEL_FILE = "model.bin"
TOKENIZER_FILE = "tokenizer.model"
TARGET_TOKENIZER_FILE = "target_tokenizer.model"
SETTINGS_FILE = "search.json"
END = "</s>"
UNUSED = "unused "  # No piece has a space in it.


def import_libraries():
    """Returns the modules `ctranslate2` and `sentencepiece`.

    Raises:
        UserError: If one is not installed.
    """
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
    """Writes the model, its tokenizer and how to search: whole, or not.

    Args:
        transformer: A built `Transformer`.
        protos: Bytes of the SentencePiece model of sources, and of that of
            targets, or `None` where they share one.
        settings: How to search.
        precision: `"float32"`, or `"int8"` for the weights of linear maps and
            embeddings, which are multiplied as integers.
        export_dir: Folder of the versions.
        version: Int, the folder's name; `None` takes the next number.

    Returns:
        The folder of the version.

    Raises:
        UserError: If CTranslate2 is not installed or has no such model, or the
            version is there already, or one of another format.
    """
    _, sentencepiece = import_libraries()
    mixer = transformer.architecture.decoder_mixer
    if mixer != "attention":
        raise UserError(
            "--format must be saved_model for a decoder without "
            f"self-attention, which CTranslate2 has not. Received: {mixer}"
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
    search = make_search(transformer, settings)
    pieces = vocabularies[1]
    search["forbidden"] = [
        *(pieces[PADDING_ID], pieces[BOS_ID]),
        *(piece for piece in pieces if piece.startswith(UNUSED)),
    ]
    length = search["max_target_length"]
    spec = make_spec(transformer, vocabularies, length)

    with new_version(export_dir, MODEL_FILE, version) as (folder, part):
        spec.validate()
        spec.optimize(quantization=precision)
        spec.save(str(part))
        (part / TOKENIZER_FILE).write_bytes(source)
        if target != source:
            (part / TARGET_TOKENIZER_FILE).write_bytes(target)
        (part / SETTINGS_FILE).write_text(json.dumps(search, indent=2))
    return folder


def list_pieces(tokenizer, size: int) -> list[str]:
    """Returns the piece of each id, `size` in all."""
    pieces = [tokenizer.id_to_piece(i) for i in range(len(tokenizer))]
    return pieces + [f"{UNUSED}{i}" for i in range(len(pieces), size)]


def make_search(transformer: Transformer, settings: SearchSettings) -> dict:
    """Returns what `CTranslate2Translator` needs to know, for JSON."""
    target_length = transformer.sequence_length
    if transformer.architecture.positions == "sine":
        target_length += settings.max_extra_length
    return {
        "beam_size": settings.beam_size,
        "length_penalty": settings.length_penalty,
        "penalty_offset": settings.penalty_offset,
        "max_extra_length": settings.max_extra_length,
        "max_source_length": transformer.sequence_length,
        "max_target_length": target_length,
    }


def read_tokenizers(folder: pathlib.Path) -> list[bytes]:
    """Returns the SentencePiece models of sources and of targets."""
    source, target = folder / TOKENIZER_FILE, folder / TARGET_TOKENIZER_FILE
    last = target if target.exists() else source
    return [source.read_bytes(), last.read_bytes()]


def load_translate(
    export_dir: pathlib.Path, version: int | None = None
) -> Callable:
    """Loads a version of an export, or the newest.

    Returns:
        `CTranslate2Translator`.

    Raises:
        UserError: If there is none, or not that one, or it is damaged, or
            CTranslate2 is not installed.
    """
    folder = find_version(export_dir, MODEL_FILE, version=version)
    with refuse_damage(folder):
        return CTranslate2Translator(folder)


class Hypothesis(NamedTuple):
    """A translation: its pieces, the end symbol last, and what of it."""

    pieces: list[str]
    score: float
    truncated: bool


class CTranslate2Translator:
    """Strings in, strings out, as the SavedModel's default signature.

    Call it with strings `(B,)`. It returns the dict of
    `Translator.translate`: `"translation"`, `"score"` and `"truncated"`, all
    `(B,)`. Strings without any token, long ones and bytes that are not UTF-8
    fare as they do there.

    Args:
        folder: Folder that `write_ctranslate2` wrote.

    Raises:
        UserError: If CTranslate2 is not installed.
    """

    def __init__(self, folder: pathlib.Path):
        ctranslate2, sentencepiece = import_libraries()
        self._tokenizer, self._target_tokenizer = (
            sentencepiece.SentencePieceProcessor(model_proto=proto)
            for proto in read_tokenizers(folder)
        )
        self._settings = json.loads((folder / SETTINGS_FILE).read_text())
        self._model = ctranslate2.Translator(
            str(folder),
            device="cpu",
            # As many batches at a time. Threads that share one wait for each
            # other, and on a busy machine long.
            inter_threads=count_processors(),
            intra_threads=1,
        )

    def __call__(self, text) -> dict[str, tf.Tensor]:
        text = tf.convert_to_tensor(text, tf.string).numpy()
        sources, source_cut = self._tokenize(text)
        best = self._translate(sources)
        truncated = [
            cut or hypothesis.truncated
            for cut, hypothesis in zip(source_cut, best, strict=True)
        ]
        return {
            "translation": tf.constant(
                [self._detokenize(hypothesis.pieces) for hypothesis in best],
                tf.string,
            ),
            "score": tf.constant([h.score for h in best], tf.float32),
            "truncated": tf.constant(truncated, tf.bool),
        }

    def _tokenize(self, text):
        """Returns the pieces of each text, and which were cut."""
        limit = self._settings["max_source_length"]
        sources, cut = [], []
        for line in text:
            ids = self._tokenizer.encode(line.replace(b"\0", b" "))
            pieces = self._tokenizer.id_to_piece(ids[: limit - 1])
            sources.append([*pieces, END])
            cut.append(len(ids) >= limit)
        return sources, cut

    def _detokenize(self, pieces):
        tokenizer = self._target_tokenizer
        return tokenizer.decode(tokenizer.piece_to_id(pieces[:-1]))

    def _translate(self, sources):
        """Returns the best `Hypothesis` of each source.

        CTranslate2 has one limit for a batch, and ours is a sentence's own.
        So those of one length go together, one group on each processor.
        """
        best = [Hypothesis([END], 0.0, False)] * len(sources)
        groups = collections.defaultdict(list)
        for place, source in enumerate(sources):
            if len(source) > 1:
                groups[len(source)].append(place)
        running = [
            self._search([sources[place] for place in places])
            for places in groups.values()
        ]
        for places, results in zip(groups.values(), running, strict=True):
            for place, result in zip(places, results, strict=True):
                best[place] = self._best(sources[place], result.result())
        return best

    def _search(self, sources):
        """Starts to translate sources of one length."""
        settings = self._settings
        beams = settings["beam_size"]
        limit = len(sources[0]) + settings["max_extra_length"]
        return self._model.translate_batch(
            sources,
            beam_size=beams,
            # At most K were cut at the limit, where they pay for no end. So
            # they crowd none of the K best others out.
            num_hypotheses=2 * beams if beams > 1 else 1,
            patience=2,
            length_penalty=0,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=min(limit, settings["max_target_length"]),
            suppress_sequences=[[piece] for piece in settings["forbidden"]],
            return_end_token=True,
            return_scores=True,
            asynchronous=True,
        )

    def _best(self, source, result):
        """Returns the best hypothesis of a source, by our rule."""
        hypotheses = [
            self._score(source, *pair)
            for pair in zip(result.hypotheses, result.scores, strict=True)
        ]
        return max(hypotheses, key=lambda hypothesis: hypothesis.score)

    def _score(self, source, pieces, log_probability):
        """Makes a `Hypothesis` of what CTranslate2 found."""
        truncated = pieces[-1] != END
        if truncated:
            # The end symbol takes the last place, at its price.
            pieces = [*pieces[:-1], END]
            scored = self._model.score_batch(
                [source], [pieces[:-1]], max_input_length=0
            )
            log_probability = sum(scored[0].log_probs)
        offset = self._settings.get("penalty_offset", 5)  # Older ones say none.
        penalty = (offset + len(pieces)) / (offset + 1)
        penalty **= self._settings["length_penalty"]
        return Hypothesis(pieces, log_probability / penalty, truncated)
