"""Translates the valid lines of a shard and reports the invalid ones."""

import collections

import numpy as np

from command_line.errors import describe_error
from command_line.text_files import find_invalid_byte
from translate.line_batching import translate_lines
from translate.runtime.runtime import Runtime

TRUNCATED = "cut at the model's limit of tokens"
# If a model cannot translate this, the error is the model's.
PROBE = b"."


def translate_shard(
    runtime: Runtime, lines: list[bytes], batch_tokens: int
) -> list[tuple[bytes, str | None]]:
    """Translates lines, of which some may be invalid.

    Returns for each line its translation and its fault: `None`, `TRUNCATED`, or the
    reason for an empty translation.

    Raises:
        Exception: Error of the model, if it cannot translate a valid text.
    """
    careful = FaultTolerantTranslate(runtime)
    invalid = map(find_invalid_byte, lines)
    faults = [where and f"not text: {where}" for where in invalid]
    right = [line for line, fault in zip(lines, faults, strict=True) if not fault]
    translations = translate_lines(
        runtime, right, batch_tokens, collections.Counter(), careful
    )
    return [
        # The dict is filled when the line has been translated.
        (b"", fault) if fault else (next(translations), careful.faults.get(line))
        for line, fault in zip(lines, faults, strict=True)
    ]


class FaultTolerantTranslate:
    """Translates batches, and records the texts that raise an error.

    A batch that raises an error is halved until a single text raises it, whose
    translation is empty, if the model still translates a valid text.
    """

    def __init__(self, runtime: Runtime):
        self._translate = runtime.translate_batch
        self.faults = {}  # Error messages by text.

    def __call__(
        self, texts: list[bytes], numbers: list[int] = ()
    ) -> dict[str, np.ndarray]:
        try:
            outputs = self._translate(texts)
        except Exception as error:  # A model may raise any kind.
            return self._halve(texts, error)
        for text, is_cut in zip(texts, outputs["truncated"], strict=True):
            if is_cut:
                self.faults[text] = TRUNCATED
        return outputs

    def _halve(self, texts, error):
        if len(texts) > 1:
            middle = len(texts) // 2
            halves = self(texts[:middle]), self(texts[middle:])
            return {
                name: np.concatenate([half[name] for half in halves])
                for name in ("translation", "truncated")
            }
        self._translate([PROBE])
        message = describe_error(error)
        self.faults[texts[0]] = " ".join(message.split())  # Without tabs.
        return {"translation": np.array([b""], object), "truncated": np.zeros(1, bool)}
