"""The signatures of an export by name, and the inputs of each."""

import tensorflow as tf


def spec(name: str, dtype=tf.string, rank: int = 1) -> tf.TensorSpec:
    return tf.TensorSpec([None] * rank, dtype, name=name)


TEXT = (spec("text"),)
# Those of a model of several languages, beside the others.
LANGUAGE_INPUTS = ("source_language", "target_language")
PAIR = (spec("source"), spec("target"))
INPUTS = {
    "serving_default": TEXT,
    "translate_nbest": (
        *TEXT,
        spec("beam_size", tf.int32, 0),
        spec("length_penalty", tf.float32, 0),
        spec("max_extra_length", tf.int32, 0),
    ),
    "translate_options": (
        *TEXT,
        spec("length_penalty", tf.float32),
        spec("max_extra_length", tf.int32),
        spec("prefix"),
    ),
    "translate_document": TEXT,
    "sample": (
        *TEXT,
        spec("temperature", tf.float32),
        spec("top_k", tf.int32),
        spec("top_p", tf.float32),
        spec("seed", tf.int32),
    ),
    "score": PAIR,
    "align": PAIR,
    "explain": PAIR,
    "explain_beam": TEXT,
}
# Those that the commands and the service need, but for `sample` and the report.
DEFAULT_SIGNATURES = (
    "serving_default",
    "translate_nbest",
    "translate_options",
    "translate_document",
    "score",
    "align",
)
