"""Chooses, among the best translations, the one nearest to a reference.

A student that learns from these stays nearer to the references than one that
learns from the best translations (Kim and Rush, 2016, section 3.3).
"""

import pathlib

import numpy as np

from command_line import bleu_tokenizer
from command_line.errors import UserError
from command_line.text_files import read_lines
from translate.runtime.runtime import Runtime, strings


class NearestTranslator:
    """Returns the translation nearest to the reference of a numbered line.

    It has the highest BLEU of a sentence (sacreBLEU's, whose counts of zero are
    smoothed, and whose order is at most the length) among as many as the export's
    beam has; of equal ones, it is the most probable. The suffix of the file of
    references may name the language, by which BLEU's tokenizer is chosen.

    Raises:
        UserError: If the file is missing, or the tokenizer, or if the model
            lacks the signature `translate_nbest`.
    """

    def __init__(self, runtime: Runtime, references: pathlib.Path):
        runtime.require("translate_nbest")
        self._ask = runtime.ask
        self._path = references
        self._references = list(read_lines(references))
        language = bleu_tokenizer.language_of(references)
        self._bleu = bleu_tokenizer.make_bleu(
            bleu_tokenizer.choose_tokenizer(language), effective_order=True
        )

    def __call__(self, lines: list[bytes], numbers: list[int]) -> dict[str, np.ndarray]:
        """Translates lines with their numbers, counted from 1.

        Raises:
            UserError: If a line lacks its reference.
        """
        self.check_count(max(numbers), "at least ")
        outputs = self._ask("translate_nbest", {"text": strings(lines)})
        chosen = [
            self._nearest(row, self._references[number - 1])
            for row, number in zip(outputs["translation"], numbers, strict=True)
        ]
        return {
            name: outputs[name][np.arange(len(chosen)), chosen]
            for name in ("translation", "truncated")
        }

    def check_count(self, lines: int, bound: str = "") -> None:
        """Refuses references of another number than `lines`.

        With the bound `"at least "` there may be more of them.
        """
        count = len(self._references)
        if count < lines or (count > lines and not bound):
            raise UserError(
                "--nearest-to must have a line for each line of the input, "
                f"{bound}{lines:,}. Received: {count:,} in {self._path}"
            )

    def _nearest(self, translations: np.ndarray, reference: str) -> int:
        """Returns the index of the nearest translation; the empty ones come last."""
        scores = [
            self._bleu.sentence_score(text.decode(), [reference]).score
            for text in translations
        ]
        return int(np.argmax(scores))
