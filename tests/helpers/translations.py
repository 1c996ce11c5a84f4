"""Models that are functions, and what `export.translate` makes of them."""

import collections

import numpy as np

from export import translate


class np_tensor(np.ndarray):  # noqa: N801
    """An array with the `numpy()` of a tensor."""

    def __new__(cls, array):
        return array.view(cls)

    def numpy(self):
        return self.view(np.ndarray)


def answer(translations, limit=99_999):
    """Returns what a model says, of which the longest are cut at a limit."""
    return {
        "translation": np_tensor(
            np.array([text[:limit] for text in translations], object)
        ),
        "truncated": np_tensor(
            np.array([len(text) > limit for text in translations])
        ),
    }


def translated(translate_, lines, batch_tokens):
    """Returns an iterator over what becomes of lines."""
    return translate.translate_lines(
        translate_, iter(lines), batch_tokens, collections.Counter()
    )
