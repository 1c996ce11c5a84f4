"""Translation functions that stand in for models."""

import collections

import tensorflow as tf

from translate import line_batching


def make_outputs(translations, limit=99_999):
    """Returns what a model says, of which the longest are cut at a limit."""
    return {
        "translation": tf.constant([text[:limit] for text in translations], tf.string),
        "truncated": tf.constant([len(text) > limit for text in translations], tf.bool),
    }


def translate_lines(translate_, lines, batch_tokens):
    """Returns an iterator over what becomes of lines."""
    return line_batching.translate_lines(
        translate_, iter(lines), batch_tokens, collections.Counter()
    )
