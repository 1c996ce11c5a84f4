"""Translates documents, sentence by sentence, in the graph.

The text between sentences is kept, so a document keeps its lines, list marks
and blanks. The graph handles `MAX_DOCUMENT` bytes and `SENTENCES_PER_BATCH`
sentences at a time, so its memory does not depend on the length of a document.
"""

from collections.abc import Callable

import tensorflow as tf

from export.model.request_splitting import in_chunks
from export.model.sentence_splitting import (
    LINE_END,
    join_parts,
    split_at_symbols,
    split_long,
    split_text,
)
from export.model.tokenized_model import cut_bytes

MAX_DOCUMENT = 2**20  # Maximum bytes of a document.
SENTENCES_PER_BATCH = 1024
MIN_BYTES = 64  # Minimum cost of a sentence.


def translate_documents(
    text: tf.Tensor,
    language: str,
    symbols: str,
    limit: int,
    is_too_long: Callable,
    translate: Callable,
) -> dict[str, tf.Tensor]:
    """Translates the sentences of documents.

    A sentence in capitals, of two words or more, is translated as if only its
    first letter were a capital, and its translation is written in capitals. A
    sentence is split at symbols that the vocabulary lacks and, if it is too long,
    as `split_long` does.

    Args:
        text: String tensor `(B,)`.
        language: As in `split_text`.
        symbols: The result of `find_unknown_symbols`; they stay.
        limit: Int, maximum tokens of a sentence that is not split.
        is_too_long: Function from strings `(N,)` to bools `(N,)`: which have
            more tokens.
        translate: Function from sentences `(N,)` and the indices of their documents
            to the outputs of `Translator.translate`, which are returned; the score
            is the mean of the sentences', or 0, and a document is truncated
            if any of its sentences is.
    """
    text, was_cut = cut_bytes(text, MAX_DOCUMENT)
    count = tf.shape(text)[0]

    def answer(rows):
        parts, is_sentence = split_text(tf.gather(text, rows), language)
        parts, is_sentence = split_at_symbols(parts, is_sentence, symbols)
        parts, is_sentence = split_long(
            parts,
            is_sentence,
            limit,
            lambda sentences: in_batches(
                sentences,
                lambda some: is_too_long(tf.gather(sentences, some)),
                tf.fill(tf.shape(sentences), False),
            ),
        )
        return translate_parts(
            parts,
            is_sentence,
            lambda sentences, documents: translate(
                sentences, tf.gather(rows, documents)
            ),
        )

    found = in_chunks(
        tf.strings.length(text) + 1, MAX_DOCUMENT, answer, blank=empty_outputs(count)
    )
    return {**found, "truncated": found["truncated"] | was_cut}


def translate_parts(parts, is_sentence, translate):
    """Translates the sentences among parts `(B, (N))`, and joins all parts."""
    places = tf.where(is_sentence.values)
    sentences = tf.gather_nd(parts.values, places)
    rows = tf.gather_nd(parts.value_rowids(), places)
    found = in_batches(
        sentences,
        lambda some: translate_in_case(
            tf.gather(sentences, some), lambda x: translate(x, tf.gather(rows, some))
        ),
        empty_outputs(tf.size(sentences)),
    )
    # A model may generate line ends.
    lines = tf.strings.regex_replace(found["translation"], LINE_END, " ")
    values = tf.tensor_scatter_nd_update(parts.values, places, lines)
    count = parts.nrows()
    return {
        "translation": join_parts(parts.with_values(values)),
        "score": tf.math.unsorted_segment_mean(found["score"], rows, count),
        "truncated": tf.math.unsorted_segment_max(
            tf.cast(found["truncated"], tf.int32), rows, count
        )
        > 0,
    }


def in_batches(sentences, answer, blank):
    """Answers indices of at most `SENTENCES_PER_BATCH` of similar length at a time."""
    return in_chunks(
        tf.maximum(tf.strings.length(sentences), MIN_BYTES),
        SENTENCES_PER_BATCH * MIN_BYTES,
        answer,
        blank,
    )


def empty_outputs(count):
    """Returns the outputs for no text."""
    return {
        "translation": tf.fill([count], ""),
        "score": tf.zeros([count]),
        "truncated": tf.fill([count], False),
    }


def translate_in_case(sentences, translate):
    """Translates sentences in capitals as if only the first letter were."""
    in_capitals = tf.strings.regex_full_match(
        sentences, r"(?s)\P{Ll}*\p{Lu}{2}\P{Ll}*\P{L}\P{Ll}*\p{Lu}{2}\P{Ll}*"
    )
    first = tf.strings.regex_replace(sentences, r"(?s)\A(\P{Lu}*\p{Lu}).*", r"\1")
    others = tf.strings.substr(
        sentences,
        tf.strings.length(first),
        tf.strings.length(sentences) - tf.strings.length(first),
    )
    found = translate(
        tf.where(
            in_capitals, first + tf.strings.lower(others, encoding="utf-8"), sentences
        )
    )
    translation = tf.where(
        in_capitals,
        tf.strings.upper(found["translation"], encoding="utf-8"),
        found["translation"],
    )
    return {**found, "translation": translation}
