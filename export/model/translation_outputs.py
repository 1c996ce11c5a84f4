"""Builds the outputs of a translation, and flags suspicious ones."""

import tensorflow as tf

from export.model.search import SearchSettings, is_empty_source
from export.model.tokenized_model import TextModel
from keras_transformer.masks import PADDING_ID
from keras_transformer.search.search_result import Hypotheses

SLACK = 5  # In tokens; lengths of short texts differ more.


def clear_empty(found: Hypotheses, lengths, cut) -> Hypotheses:
    """Blanks the hypotheses of empty texts and missing ones: no ids, score 0.

    Args:
        found: Results of the search, `N` for each text.
        lengths: Int32 tensor `(B,)`, tokens of each text. A text of EOS alone
            has no translation.
        cut: Bool tensor `(B,)`, which texts were cut.

    Returns:
        `Hypotheses`; those of texts that were cut are `truncated`.
    """
    real = ~is_empty_source(lengths)[:, None] & (found.lengths > 0)
    return Hypotheses(
        ids=tf.where(real[:, :, None], found.ids, PADDING_ID),
        scores=tf.where(real, found.scores, 0.0),
        lengths=tf.where(real, found.lengths, 0),
        truncated=(cut[:, None] | found.truncated) & real,
    )


def is_suspicious(found: Hypotheses, lengths, ratio):
    """Flags best translations whose length does not fit the source.

    The longer of the two has more than `ratio` times the tokens of the other,
    plus `SLACK`, without EOS.

    Args:
        found: Result of `clear_empty`.
        lengths: Int32 tensor `(B,)`, tokens of each text.
        ratio: Float, or float32 tensor `(B,)`, at least 1; 0 flags none.

    Returns:
        Bool tensor `(B,)`.
    """
    source, target = (
        tf.cast(tf.maximum(x - 1, 0), tf.float32)
        for x in (lengths, found.lengths[:, 0])
    )
    longer, shorter = tf.maximum(source, target), tf.minimum(source, target)
    return (ratio > 0) & (longer > ratio * shorter + SLACK)


def describe_best(model: TextModel, found: Hypotheses) -> dict[str, tf.Tensor]:
    """Returns the outputs of the best translation of each text."""
    return {
        "translation": model.detokenize(found.ids)[:, 0],
        "score": found.scores[:, 0],
        "truncated": found.truncated[:, 0],
    }


def suspicious_output(
    found: Hypotheses, lengths, settings: SearchSettings
) -> dict[str, tf.Tensor]:
    """Returns the output `suspicious`, if the settings enable it."""
    ratio = settings.max_length_ratio
    if not ratio:
        return {}
    return {"suspicious": is_suspicious(found, lengths, ratio)}
