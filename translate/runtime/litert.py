"""Runs an export for LiteRT, by `litert_translator`."""

import pathlib

import numpy as np

from export.litert.translator_loading import load_translator
from text_processing.language_tags import LanguageTags
from translate.runtime.bounded_batches import count_batches
from translate.runtime.runtime import Runtime


class LiteRTRuntime(Runtime):
    """A version of an export for LiteRT.

    The outputs are those of a SavedModel, but for the `length` of
    `translate_nbest`.

    Raises:
        UserError: If LiteRT is not installed.
    """

    signatures = ("serving_default", "translate_nbest", "sample", "align", "score")

    def __init__(self, folder: pathlib.Path):
        self._translator = load_translator(folder)
        self._settings = self._translator.settings
        self.language = self._settings["source_language"]
        if languages := self._settings["languages"]:
            self.languages = LanguageTags(**languages)
        self.in_flight = count_batches()

    def for_languages(self, source: str, target: str) -> "LiteRTRuntime":
        view = super().for_languages(source, target)
        if view is not self:
            view._translator = self._translator.for_languages(*view._codes)
        return view

    def ask(
        self, signature: str, inputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        self.require(signature)
        arrays = {name: np.asarray(value) for name, value in inputs.items()}
        return getattr(self, f"_{signature}")(**arrays)

    def _serving_default(self, text):
        return as_outputs(self._translator.translate(text.tolist()))

    def _translate_nbest(self, text, beam_size=None, **options):
        search = self._settings["search"]
        beams = int(search["beam_size"] if beam_size is None else beam_size)
        found = self._translator.translate_nbest(
            text.tolist(),
            beams,
            beam_size=beams,
            **{name: value[()] for name, value in options.items()},
        )
        missing = [("", 0.0, False)] * beams
        rows = [as_outputs((row + missing)[:beams]) for row in found]
        outputs = {
            name: np.stack([row[name] for row in rows])
            for name in ("translation", "score", "truncated")
        }
        counts = np.array([[len(row)] for row in found])
        return {**outputs, "valid": np.arange(beams) < counts}

    def _sample(self, text, seed, temperature, top_k, top_p):
        rows = zip(text.tolist(), seed, temperature, top_k, top_p, strict=True)
        return as_outputs(
            [
                self._translator.sample(
                    [line], [int(seed) % 2**32], temperature=t, top_k=k, top_p=p
                )[0]
                for line, seed, t, k, p in rows
            ]
        )

    def _align(self, source, target):
        found = self._translator.align(source.tolist(), target.tolist())
        attention = pad([each.attention for each in found])
        lengths = np.array([[len(each.target_tokens)] for each in found])
        is_real = np.arange(attention.shape[1]) < lengths
        alignment = np.where(is_real, attention.argmax(axis=2), -1)
        return {
            "attention": attention,
            "alignment": alignment.astype(np.int32),
            "source_tokens": pad_subwords([each.source_tokens for each in found]),
            "target_tokens": pad_subwords([each.target_tokens for each in found]),
            "truncated": np.array([each.truncated for each in found]),
        }

    def _score(self, source, target):
        found = self._translator.align(source.tolist(), target.tolist())
        sums = [each.log_probabilities.sum() for each in found]
        return {
            "log_probability": np.array(sums, np.float32),
            "score": np.array([each.score for each in found], np.float32),
            "token_log_probabilities": pad([e.log_probabilities for e in found]),
            "tokens": pad_subwords([each.target_tokens for each in found]),
            "truncated": np.array([each.truncated for each in found]),
        }


def as_outputs(translations: list) -> dict[str, np.ndarray]:
    """Returns the outputs of the default signature for translations."""
    texts, scores, truncated = [*zip(*translations, strict=True)] or [()] * 3
    return {
        "translation": np.array([text.encode() for text in texts], object),
        "score": np.array(scores, np.float32),
        "truncated": np.array(truncated, bool),
    }


def pad(arrays: list[np.ndarray]) -> np.ndarray:
    """Stacks arrays of unlike shapes, with zeros at their ends."""
    shape = np.max([array.shape for array in arrays], axis=0)
    padded = np.zeros((len(arrays), *shape), np.float32)
    for row, array in zip(padded, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return padded


def pad_subwords(rows: list[list[str]]) -> np.ndarray:
    """Returns subwords as UTF-8 `(B, T)`, padded with `b""`."""
    padded = np.full((len(rows), max(map(len, rows))), b"", object)
    for row, subwords in zip(padded, rows, strict=True):
        row[: len(subwords)] = [subword.encode() for subword in subwords]
    return padded
