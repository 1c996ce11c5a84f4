"""Runtimes that stand in for models."""

import collections

import numpy as np

from translate import line_batching
from translate.runtime.runtime import Runtime
from translate.runtime.signature_arrays import strings


class FunctionRuntime(Runtime):
    """Answers by a function of a list of bytes; claims to have the `signatures`."""

    knows_placeholders = False

    def __init__(self, translate, signatures=("serving_default",)):
        self._translate, self.signatures = translate, signatures

    def ask(self, signature, inputs):
        return self._translate(inputs["text"].tolist())


def make_outputs(translations, limit=99_999):
    """Returns what a model says, of which the longest are cut at a limit."""
    return {
        "translation": strings([text[:limit] for text in translations]),
        "truncated": np.array([len(text) > limit for text in translations], bool),
    }


def translate_lines(translate_, lines, batch_tokens):
    """Returns an iterator over what becomes of lines, by a runtime or a function."""
    if not isinstance(translate_, Runtime):
        translate_ = FunctionRuntime(translate_)
    return line_batching.translate_lines(
        translate_, iter(lines), batch_tokens, collections.Counter()
    )
