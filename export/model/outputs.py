"""What a translation is told as, and when it is doubtful."""

import tensorflow as tf

from export.model.search import SearchSettings
from export.model.search import is_empty
from export.model.text_model import TextModel
from keras_transformer.masks import PADDING_ID
from keras_transformer.search.beam_search import Hypotheses

SLACK = 5  # Tokens; short texts differ more.


def blank_out(found: Hypotheses, lengths, cut) -> Hypotheses:
    """Blanks what no text or no hypothesis stands behind: `""`, score 0.

    Args:
        found: What the search found, `N` a text.
        lengths: Int32 tensor `(B,)`, tokens of each text. One without any
            but its end symbol has no translation, whatever was found.
        cut: Bool tensor `(B,)`, which texts were cut.

    Returns:
        `Hypotheses`, those of texts that were cut `truncated` too.
    """
    real = ~is_empty(lengths)[:, None] & (found.lengths > 0)
    return Hypotheses(
        ids=tf.where(real[:, :, None], found.ids, PADDING_ID),
        scores=tf.where(real, found.scores, 0.0),
        lengths=tf.where(real, found.lengths, 0),
        truncated=(cut[:, None] | found.truncated) & real,
    )


def is_suspicious(found: Hypotheses, lengths, ratio):
    """Tells which best translations are too long for their source, or short.

    Those where the longer of the two has more than `ratio` times the tokens of
    the other, and `SLACK` more; the end symbol aside.

    Args:
        found: What `blank_out` returned.
        lengths: Int32 tensor `(B,)`, tokens of each text.
        ratio: Float, or float32 tensor `(B,)`, at least 1; 0 tells nobody.

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
    """Returns the outputs that tell the best translation of each text."""
    return {
        "translation": model.detokenize(found.ids)[:, 0],
        "score": found.scores[:, 0],
        "truncated": found.truncated[:, 0],
    }


def describe_doubts(
    found: Hypotheses, lengths, settings: SearchSettings
) -> dict[str, tf.Tensor]:
    """Returns the output `suspicious`, if the export was made to have it."""
    ratio = settings.max_length_ratio
    if not ratio:
        return {}
    return {"suspicious": is_suspicious(found, lengths, ratio)}
