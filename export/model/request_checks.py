"""Options that clients send: what they may be, and what to say if not."""

import tensorflow as tf

MAX_BEAM_SIZE = 100
# Beyond it penalties of long translations leave float32.
MAX_LENGTH_PENALTY = 10
MAX_EXTRA_LENGTH = 1_000


def with_checked_options(text, beam_size, length_penalty, max_extra_length):
    """Returns the inputs; fails with one line where an option is wrong."""
    checks = [
        tf.debugging.Assert(
            good, [f"{name} must be {wanted}. Received:", value]
        )
        for name, wanted, good, value in (
            (
                "beam_size",
                f"between 1 and {MAX_BEAM_SIZE}",
                (beam_size >= 1) & (beam_size <= MAX_BEAM_SIZE),
                beam_size,
            ),
            (
                "length_penalty",
                f"between -{MAX_LENGTH_PENALTY} and {MAX_LENGTH_PENALTY}",
                is_length_penalty(length_penalty),
                length_penalty,
            ),
            (
                "max_extra_length",
                f"between 0 and {MAX_EXTRA_LENGTH}",
                is_extra_length(max_extra_length),
                max_extra_length,
            ),
        )
    ]
    # Nothing else may fail before the checks.
    with tf.control_dependencies(checks):
        return [
            tf.identity(value)
            for value in (text, beam_size, length_penalty, max_extra_length)
        ]


def is_length_penalty(value):
    return tf.abs(value) <= MAX_LENGTH_PENALTY  # False of NaN.


def is_extra_length(value):
    return (value >= 0) & (value <= MAX_EXTRA_LENGTH)


def with_equal_rows(**inputs):
    """Returns the inputs; fails with one line where one has more rows."""
    rows = tf.stack([tf.shape(value)[0] for value in inputs.values()])
    check = tf.debugging.Assert(
        tf.reduce_all(rows == rows[0]),
        [f"{', '.join(inputs)} must have as many rows each. Received:", rows],
    )
    # Nothing else may fail before the check, or stretch a row.
    with tf.control_dependencies([check]):
        return [tf.identity(value) for value in inputs.values()]


def describe_errors(length_penalty, max_extra_length):
    """Returns what is wrong with each row's options, or `""`."""
    penalty = tf.where(
        is_length_penalty(length_penalty),
        "",
        f"length_penalty must be between -{MAX_LENGTH_PENALTY} and "
        f"{MAX_LENGTH_PENALTY}. Received: "
        + tf.strings.as_string(length_penalty),
    )
    extra = tf.where(
        is_extra_length(max_extra_length),
        "",
        f"max_extra_length must be between 0 and {MAX_EXTRA_LENGTH}. Received: "
        + tf.strings.as_string(max_extra_length),
    )
    return tf.where(penalty != "", penalty, extra)
