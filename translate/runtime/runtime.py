"""One protocol of all runtimes: signatures that take and return arrays.

A signature is named as in a SavedModel (docs/signatures.md): `serving_default`
translates, `translate_nbest` returns the best hypotheses, `align` and `score`
take a translation, `sample` draws one. `Runtime` calls them by name; its methods
speak of sentences.
"""

import abc
import contextlib
import copy
import functools
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from command_line.cpu_count import count_processors
from command_line.errors import UserError
from documents.formats import translate_whole
from documents.glossary import Glossary
from documents.markup.word_alignment import word_attention
from documents.translation_repair import (
    has_lost_symbols,
    hide_terms,
    is_alignable,
    place_terms,
    restore_symbols,
    show_terms,
)
from export.model.signature_inputs import LANGUAGE_INPUTS
from text_processing.language_tags import LanguageTags
from text_processing.placeholders import PLACEHOLDERS
from translate.runtime.bounded_batches import MAX_ALIGNED_SQUARES, in_batches
from translate.runtime.capitals import is_in_capitals, with_one_capital
from translate.word_confidence import group_words

SIGNATURE = "serving_default"
ALIGN_OUTPUTS = ("attention", "source_tokens", "target_tokens")
# Optional features, and the signatures that each needs.
MARKUP = "markup"
ALTERNATIVES, WORDS = "alternatives", "words"
SIGNATURES_OF_FEATURE = {
    MARKUP: ("align",),
    ALTERNATIVES: ("translate_nbest",),
    WORDS: ("align", "score"),
}
PROBE = ["a"]
# The types of the outputs that the commands read.
OUTPUT_KINDS = {"translation": "O", "truncated": "b"}


class Translation(NamedTuple):
    """A translated sentence."""

    text: str
    truncated: bool  # Whether the sentence or its translation was cut.


class Runtime(abc.ABC):
    """A loaded model, on disk or on a server.

    Attributes:
        signatures: Names of its signatures.
        language: ISO 639-1 code of the sources, or `""` if it is not known.
        languages: `LanguageTags` of a model of several languages, or `None`.
        language_inputs: Names of those inputs for languages that its signatures have.
        max_rows: Int, maximum number of sentences of a call.
        in_flight: Int, number of calls that it can answer at a time.
        glossary: The terms of its translations.
        original: The runtime itself, or the one that a view of it shows.
    """

    signatures: Collection[str]
    language = ""
    languages: LanguageTags | None = None
    language_inputs: Collection[str] = ()
    _codes: Mapping[str, str] = types.MappingProxyType({})  # By the names of inputs.
    max_rows = 2048
    in_flight = 1
    glossary = Glossary()
    _original: "Runtime | None" = None

    @abc.abstractmethod
    def ask(
        self, signature: str, inputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of a signature; inputs with a default may be missing.

        Raises:
            UserError: If the model does not answer.
        """

    @property
    def original(self) -> "Runtime":
        return self._original or self

    def for_languages(self, source: str, target: str) -> "Runtime":
        """Returns the same model, which gets the codes of two languages.

        A model of one pair is returned as it is. Of a side with a single language the
        code may be `""`.

        Raises:
            UserError: If the model lacks a language; it names similar codes.
        """
        if self.languages is None and not self.language_inputs:
            return self
        if self.languages:
            source, target = self.languages.complete(source, target)
        view = copy.copy(self)
        view._original = self.original
        view.language = source or self.language
        codes = zip(LANGUAGE_INPUTS, (source, target), strict=True)
        view._codes = {name: code for name, code in codes if code}
        return view

    def with_languages(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the inputs of a request with those for its languages."""
        missing = [x for x in self.language_inputs if x not in {*self._codes, *inputs}]
        if missing:
            raise UserError(
                f"a model of several languages must get a {missing[0]}. Received: none"
            )
        rows = max(len(value) for value in inputs.values() if np.ndim(value))
        added = {
            name: np.full(rows, self._codes[name].encode(), object)
            for name in self.language_inputs
            if name not in inputs
        }
        return {**added, **inputs}

    def map(self, answer: Callable, batches: Iterable) -> Iterator:
        """Yields `answer(batch)` of each batch, in order."""
        return map(answer, batches)

    def require(self, *signatures: str) -> None:
        """Refuses a model that lacks a signature.

        Raises:
            UserError: If it does.
        """
        missing = [name for name in signatures if name not in self.signatures]
        if missing:
            raise UserError(
                f"the export must have the signature {missing[0]}; `export "
                f"--signatures {missing[0]}` writes it into a SavedModel. "
                f"Received: {', '.join(self.signatures)}"
            )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of `SIGNATURES_OF_FEATURE` that the model supports."""
        return tuple(
            name
            for name, needed in SIGNATURES_OF_FEATURE.items()
            if all(signature in self.signatures for signature in needed)
        )

    def with_glossary(self, glossary: Glossary) -> "Runtime":
        """Returns the same model with the terms of a glossary in its translations.

        Raises:
            UserError: If it cannot align.
        """
        self.require("align")
        # The copy keeps it, and a server without alignments refuses it.
        _ = self.knows_placeholders
        model = copy.copy(self)
        model.glossary, model._original = glossary, self.original
        return model

    def translate_batch(self, lines: list[bytes | str]) -> dict[str, np.ndarray]:
        """Returns the outputs of the default signature, with symbols that it lost.

        Raises:
            UserError: If these are not of a translation model.
        """
        texts = strings(lines)
        sources = list(map(decode_line, texts))
        asked, names = texts.copy(), [{}] * len(texts)
        if self.glossary and self.knows_placeholders:
            for row, source in enumerate(sources):
                text, names[row] = hide_terms(self.glossary, source)
                if names[row]:
                    asked[row] = text.encode()
        outputs = check_outputs(self.ask(SIGNATURE, {"text": asked}), len(lines))
        translations = outputs["translation"].copy()
        found = list(map(decode_line, translations))
        pairs = [
            (each[0], show_terms(self.glossary, *each))
            for each in zip(sources, found, names, strict=True)
        ]
        repaired = self._repair(pairs)
        for row, (old, new) in enumerate(zip(found, repaired, strict=True)):
            if new != old:
                translations[row] = new.encode()
        return {**outputs, "translation": translations}

    def _repair(self, pairs: list[tuple[str, str]]) -> list[str]:
        """Returns translations with the symbols and terms that they lost."""
        found = [translation for _, translation in pairs]
        for lacks, repair in (
            (has_lost_symbols, restore_symbols),
            (self.glossary.lacks, functools.partial(place_terms, self.glossary)),
        ):
            lossy = {
                row: (text, found[row])
                for row, (text, _) in enumerate(pairs)
                if lacks(text, found[row])
            }
            aligned = self._try_to_align(list(lossy.values()))
            for row, pair in lossy.items():
                found[row] = repair(*pair, aligned.get(pair))
        return found

    def _try_to_align(self, pairs: list[tuple[str, str]]) -> dict:
        """Returns the word alignments of those pairs that can be aligned."""
        aligned = {}
        if "align" in self.signatures:
            short = [pair for pair in pairs if is_alignable(*pair)]
            # The translation is there, and needs no alignment.
            with contextlib.suppress(Exception):
                found = in_batches(short, MAX_ALIGNED_SQUARES, self.align)
                aligned = dict(zip(short, found, strict=True))
        return aligned

    def translate(self, texts: list[str]) -> list[Translation]:
        """Translates sentences; those in capitals as if they were not."""
        capitals = [is_in_capitals(text) for text in texts]
        outputs = self.translate_batch(
            [
                with_one_capital(text) if shouted else text
                for text, shouted in zip(texts, capitals, strict=True)
            ]
        )
        found = zip(
            map(decode_line, outputs["translation"]),
            capitals,
            map(bool, outputs["truncated"]),
            strict=True,
        )
        return [
            Translation(text.upper() if shouted else text, was_cut)
            for text, shouted, was_cut in found
        ]

    def translate_any_length(self, texts: list[str]) -> list[Translation]:
        """Translates sentences; one that the model cuts is split in two."""
        steps, found = translate_whole(texts), None
        while True:
            try:
                texts = steps.send(found).inputs
                found = [
                    each
                    for i in range(0, len(texts), self.max_rows)
                    for each in self.translate(texts[i : i + self.max_rows])
                ]
            except StopIteration as stop:
                return [Translation(*each) for each in stop.value]

    def align(self, pairs: list[tuple[str, str]]) -> list[np.ndarray]:
        """Returns the word alignments of sentences and their translations.

        See `word_attention`.
        """
        return [
            word_attention(attention, source, source_pieces, target, target_pieces)
            for (source, target), (attention, source_pieces, target_pieces) in zip(
                pairs, self._align_subwords(pairs), strict=True
            )
        ]

    def _align_subwords(self, pairs) -> Iterator[tuple]:
        """Yields attention `(T, S)`, source and target subwords of each pair."""
        sources, targets = map(strings, zip(*pairs, strict=True))
        outputs = self.ask("align", {"source": sources, "target": targets})
        if missing := [name for name in ALIGN_OUTPUTS if name not in outputs]:
            raise ValueError(
                f"`align` must return {', '.join(ALIGN_OUTPUTS)}. "
                f"Received: no {', '.join(missing)}"
            )
        for attention, *pieces in zip(
            *(outputs[name] for name in ALIGN_OUTPUTS), strict=True
        ):
            source, target = ([p for p in side if p] for side in pieces)
            yield attention[: len(target), : len(source)], source, target

    @functools.cached_property
    def knows_placeholders(self) -> bool:
        """Whether placeholders are subwords of the vocabularies."""
        name = PLACEHOLDERS[0]
        ((_, *sides),) = self._align_subwords([(name, name)])
        return all(name.encode() in pieces for pieces in sides)

    def find_alternatives(self, texts: list[str], beam_size: int) -> list[list[str]]:
        """Returns the best translations of each sentence, best first.

        Those that were cut are left out, unless the best one was cut, too.
        """
        outputs = self.ask(
            "translate_nbest",
            {"text": strings(texts), "beam_size": np.int32(beam_size)},
        )
        found = []
        for text, row, valid, was_cut in zip(
            texts,
            *(outputs[n] for n in ("translation", "valid", "truncated")),
            strict=True,
        ):
            others = row[valid & (~was_cut | was_cut[0])]
            found.append(self._repair([(text, decode_line(o)) for o in others]))
        return found

    def find_words(self, pairs: list[tuple[str, str]]) -> list[dict]:
        """Returns the words of sentences and of their translations.

        See `group_words`.
        """
        sources, targets = map(strings, zip(*pairs, strict=True))
        inputs = {"source": sources, "target": targets}
        aligned, scored = self.ask("align", inputs), self.ask("score", inputs)
        return [
            group_words(*row)
            for row in zip(
                aligned["source_tokens"],
                aligned["target_tokens"],
                aligned["attention"],
                scored["token_log_probabilities"],
                strict=True,
            )
        ]

    def probe(self) -> None:
        """Calls each method once, since the first call is slow."""
        self.translate(PROBE)
        for feature in self.features:
            if feature == MARKUP:
                self.align([(PROBE[0], PROBE[0])])
                _ = self.knows_placeholders
            elif feature == ALTERNATIVES:
                self.find_alternatives(PROBE, 2)
            else:
                self.find_words([(PROBE[0], PROBE[0])])

    def ask_one(self, signature: str, **texts: bytes) -> dict[str, np.ndarray]:
        """Returns the outputs for one text each, without their batch axis."""
        outputs = self.ask(signature, {k: strings([v]) for k, v in texts.items()})
        return {name: value[0] for name, value in outputs.items()}


def count_batches() -> int:
    """Returns how many batches a model in this process translates at a time.

    One for each thread of TensorFlow, and at least two: one is for short requests.
    """
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    return max(2, threads or count_processors())


def check_outputs(outputs: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
    """Returns the outputs if they have the expected names, types and shapes.

    Raises:
        UserError: If they do not.
    """
    for name, kind in OUTPUT_KINDS.items():
        found = np.asarray(outputs.get(name))
        if found.dtype.kind != kind or found.shape != (rows,):
            raise UserError(
                "--export-dir or --server must be of a translation model. "
                f"Received: an answer without `{name}` for each text"
            )
    return outputs


def strings(texts: Iterable[str | bytes]) -> np.ndarray:
    """Returns UTF-8 strings as an array `(B,)`."""
    encoded = [t.encode() if isinstance(t, str) else t for t in texts]
    array = np.empty(len(encoded), object)
    array[:] = encoded
    return array


def decode_line(text: bytes) -> str:
    # A model may generate line ends; a sentence has none.
    return " ".join(text.decode("utf-8", "replace").splitlines())
