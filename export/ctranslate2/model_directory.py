"""Writes a trained model as a CTranslate2 directory, and translates with one.

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

CTranslate2's length penalty, `log p / n ** α`, differs from that of the
SavedModel. So the search runs without one, and this module ranks the hypotheses
by `log p / ((k + n) / (k + 1)) ** α`: `α`, `k` and scores mean the same.
"""

import collections
import json
import pathlib
from typing import NamedTuple

import tensorflow as tf

from command_line.cpu_count import count_processors
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
from keras_transformer.masks import BOS_ID, PADDING_ID

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

    Returns:
        The folder of the version.

    Raises:
        UserError: If CTranslate2 is not installed or does not support the
            model, or if the version exists, or versions of another format.
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


class Hypothesis(NamedTuple):
    """A translation: its subwords with EOS, score and whether it was cut."""

    pieces: list[str]
    score: float
    truncated: bool


class CTranslate2Translator:
    """Strings in, strings out, as the SavedModel's default signature.

    Call it with strings `(B,)`. It returns the dict of
    `Translator.translate`: `"translation"`, `"score"` and `"truncated"`, all
    `(B,)`. It treats empty strings, long ones and invalid UTF-8 alike.

    Args:
        folder: Folder that `write_ctranslate2` wrote.

    Attributes:
        signatures: The translator itself, as `"serving_default"`.
    """

    def __init__(self, folder: pathlib.Path):
        ctranslate2, sentencepiece = import_libraries()
        self._tokenizer, self._target_tokenizer = (
            sentencepiece.SentencePieceProcessor(model_proto=proto)
            for proto in read_tokenizers(folder)
        )
        self._settings = json.loads((folder / SETTINGS_FILE).read_text())
        self.signatures = {"serving_default": self}
        self._model = ctranslate2.Translator(
            str(folder),
            device="cpu",
            # A thread a batch: threads that share a batch wait for each
            # other, which is slow on a busy machine.
            inter_threads=count_processors(),
            intra_threads=1,
        )

    def __call__(self, text) -> dict[str, tf.Tensor]:
        text = tf.convert_to_tensor(text, tf.string).numpy()
        sources, source_cut = self._tokenize(text)
        best = self._translate(sources)
        decode = self._target_tokenizer.decode
        to_ids = self._target_tokenizer.piece_to_id
        truncated = [
            cut or hypothesis.truncated
            for cut, hypothesis in zip(source_cut, best, strict=True)
        ]
        return {
            "translation": tf.constant(
                [decode(to_ids(found.pieces[:-1])) for found in best], tf.string
            ),
            "score": tf.constant([h.score for h in best], tf.float32),
            "truncated": tf.constant(truncated, tf.bool),
        }

    def _tokenize(self, text):
        """Returns the subwords of each text, and whether each was cut."""
        limit = self._settings["max_source_length"]
        sources, cut = [], []
        for line in text:
            ids = self._tokenizer.encode(line.replace(b"\0", b" "))
            pieces = self._tokenizer.id_to_piece(ids[: limit - 1])
            sources.append([*pieces, END])
            cut.append(len(ids) >= limit)
        return sources, cut

    def _translate(self, sources):
        """Returns the best `Hypothesis` of each source.

        CTranslate2 has one length limit for a batch, but our limit depends on
        the sentence. So sources of equal length form a batch, one on each CPU.
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
                found = result.result()
                pairs = zip(found.hypotheses, found.scores, strict=True)
                hypotheses = [self._score(sources[place], *pair) for pair in pairs]
                best[place] = max(hypotheses, key=lambda found: found.score)
        return best

    def _search(self, sources):
        """Starts the translation of sources of equal length."""
        settings = self._settings
        beams = settings["beam_size"]
        limit = len(sources[0]) + settings["max_extra_length"]
        return self._model.translate_batch(
            sources,
            beam_size=beams,
            # At most K hypotheses were cut at the limit, without EOS;
            # with 2 K results they cannot displace the K best others.
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

    def _score(self, source, pieces, log_probability):
        """Converts a result of CTranslate2 to a `Hypothesis`."""
        truncated = pieces[-1] != END
        if truncated:
            # EOS takes the last position, and its probability counts.
            pieces = [*pieces[:-1], END]
            scored = self._model.score_batch(
                [source], [pieces[:-1]], max_input_length=0
            )
            log_probability = sum(scored[0].log_probs)
        offset = self._settings["penalty_offset"]
        penalty = (offset + len(pieces)) / (offset + 1)
        penalty **= self._settings["length_penalty"]
        return Hypothesis(pieces, log_probability / penalty, truncated)
