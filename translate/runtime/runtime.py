"""One protocol of all runtimes: signatures that take and return arrays.

A signature is named as in a SavedModel (docs/reference/signatures.md). `Runtime.ask`
calls one; the other methods take and return texts.
"""

import abc
import copy
import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from command_line.errors import UserError
from documents.formats import translate_whole
from documents.glossary import Glossary
from documents.markup.word_alignment import word_attention
from export.model.signature_inputs import LANGUAGE_INPUTS
from text_processing.language_tags import LanguageTags
from text_processing.placeholders import PLACEHOLDERS
from translate.runtime.capitals import is_in_capitals, with_one_capital
from translate.runtime.signature_arrays import check_outputs, decode_line, strings
from translate.runtime.word_restoration import restore_lost_words
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
    _codes = "", ""  # Of sources and targets.
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
        view = self._copy()
        view.language = source or self.language
        view._codes = source, target
        return view

    def _copy(self) -> "Runtime":
        view = copy.copy(self)
        view._original = self.original
        return view

    def with_languages(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the inputs of a request with those for its languages."""
        rows = max(len(value) for value in inputs.values() if np.ndim(value))
        added = {}
        for name, code in zip(LANGUAGE_INPUTS, self._codes, strict=True):
            if name in self.language_inputs and name not in inputs:
                if not code:
                    raise UserError(
                        f"a model of several languages must get a {name}. "
                        "Received: none"
                    )
                added[name] = np.full(rows, code.encode(), object)
        return {**added, **inputs}

    def map(self, answer: Callable, batches: Iterable) -> Iterator:
        """Yields `answer(batch)` of each batch, in order."""
        return map(answer, batches)

    def require(self, *signatures: str) -> None:
        """Refuses a model that lacks a signature, by a `UserError`."""
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

        A model that cannot align is refused.
        """
        self.require("align")
        _ = self.knows_placeholders  # A server without alignments refuses it.
        model = self._copy()
        model.glossary = glossary
        return model

    def translate_batch(self, lines: list[bytes | str]) -> dict[str, np.ndarray]:
        """Returns the outputs of the default signature, with lost symbols and terms.

        Another model than one of translation is refused.
        """
        texts = strings(lines)
        sources = list(map(decode_line, texts))
        outputs = check_outputs(self.ask(SIGNATURE, {"text": texts}), len(lines))
        translations = outputs["translation"].copy()
        found = list(map(decode_line, translations))
        repaired = self._repair(list(zip(sources, found, strict=True)))
        for row, (old, new) in enumerate(zip(found, repaired, strict=True)):
            if new != old:
                translations[row] = new.encode()
        return {**outputs, "translation": translations}

    def _repair(self, pairs: list[tuple[str, str]]) -> list[str]:
        align = self.align if "align" in self.signatures else None
        return restore_lost_words(pairs, self.glossary, align)

    def translate(self, texts: list[str]) -> list[Translation]:
        """Translates sentences; those in capitals as if they were not."""
        capitals = [is_in_capitals(text) for text in texts]
        outputs = self.translate_batch(
            [
                with_one_capital(text) if shouted else text
                for text, shouted in zip(texts, capitals, strict=True)
            ]
        )
        found = map(decode_line, outputs["translation"])
        return [
            Translation(text.upper() if shouted else text, bool(was_cut))
            for text, shouted, was_cut in zip(
                found, capitals, outputs["truncated"], strict=True
            )
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
        outputs = self._ask_pairs("align", pairs)
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

    def _ask_pairs(self, signature, pairs):
        sources, targets = map(strings, zip(*pairs, strict=True))
        return self.ask(signature, {"source": sources, "target": targets})

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
        """Returns the words of sentences and translations; see `group_words`."""
        scored = self._ask_pairs("score", pairs)["token_log_probabilities"]
        rows = zip(self._align_subwords(pairs), scored, strict=True)
        return [
            group_words(source, target, attention, log_probabilities)
            for (attention, source, target), log_probabilities in rows
        ]

    def probe(self) -> None:
        """Calls each method once, since the first call is slow."""
        self.translate(["a"])
        for feature in self.features:
            if feature == MARKUP:
                self.align([("a", "a")])
                _ = self.knows_placeholders
            elif feature == ALTERNATIVES:
                self.find_alternatives(["a"], 2)
            else:
                self.find_words([("a", "a")])

    def ask_one(self, signature: str, **texts: bytes) -> dict[str, np.ndarray]:
        """Returns the outputs for one text each, without their batch axis."""
        outputs = self.ask(signature, {k: strings([v]) for k, v in texts.items()})
        return {name: value[0] for name, value in outputs.items()}
