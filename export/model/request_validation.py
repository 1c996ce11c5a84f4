"""Validates the options of a request inside the graph."""

import tensorflow as tf

MAX_BEAM_SIZE = 100
# Beyond it penalties of long translations leave float32.
MAX_LENGTH_PENALTY = 10
MAX_EXTRA_LENGTH = 1_000
# A step compares so many tokens.
MAX_NO_REPEAT_NGRAM = 20
MAX_LENGTH_RATIO = 1_000
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100

# What each must be, and whether a number, or a tensor, is that. NaN never is.
CHECKS = {
    "beam_size": (
        f"between 1 and {MAX_BEAM_SIZE}",
        lambda x: (x >= 1) & (x <= MAX_BEAM_SIZE),
    ),
    "length_penalty": (
        f"between -{MAX_LENGTH_PENALTY} and {MAX_LENGTH_PENALTY}",
        lambda x: (x >= -MAX_LENGTH_PENALTY) & (x <= MAX_LENGTH_PENALTY),
    ),
    "max_extra_length": (
        f"between 0 and {MAX_EXTRA_LENGTH}",
        lambda x: (x >= 0) & (x <= MAX_EXTRA_LENGTH),
    ),
    "no_repeat_ngram": (
        f"between 0 and {MAX_NO_REPEAT_NGRAM}",
        lambda x: (x >= 0) & (x <= MAX_NO_REPEAT_NGRAM),
    ),
    "min_length": (
        f"between 0 and {MAX_EXTRA_LENGTH}",
        lambda x: (x >= 0) & (x <= MAX_EXTRA_LENGTH),
    ),
    "max_length_ratio": (
        f"0, or between 1 and {MAX_LENGTH_RATIO}",
        lambda x: (x == 0) | ((x >= 1) & (x <= MAX_LENGTH_RATIO)),
    ),
    "temperature": (
        f"between {MIN_TEMPERATURE} and {MAX_TEMPERATURE}",
        lambda x: (x >= MIN_TEMPERATURE) & (x <= MAX_TEMPERATURE),
    ),
    "top_k": (
        f"between 0 and {tf.int32.max}",
        lambda x: (x >= 0) & (x <= tf.int32.max),
    ),
    "top_p": ("above 0 and at most 1", lambda x: (x > 0) & (x <= 1)),
}

# What stands in the place of what is wrong, where 0 is not right.
HARMLESS = {"temperature": 1, "top_p": 1}


def with_checked_options(text, **options):
    """Returns the inputs; fails with one line where an option is wrong."""
    checks = []
    for name, value in options.items():
        wanted, is_good = CHECKS[name]
        message = [f"{name} must be {wanted}. Received:", value]
        checks.append(tf.debugging.Assert(is_good(value), message))
    # Nothing else may fail before the checks.
    with tf.control_dependencies(checks):
        return [tf.identity(value) for value in (text, *options.values())]


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


def with_harmless_rows(text, **options):
    """Makes the rows harmless whose options are wrong, for their batch mates.

    Args:
        text: String tensor `(B,)`.
        **options: Tensors `(B,)`; those without a rule are right.

    Returns:
        A list of the text, `""` in such rows, and the options; and what
        is wrong with each row, or `""`: string `(B,)`.
    """
    text, *values = with_equal_rows(text=text, **options)
    options = dict(zip(options, values, strict=True))
    error = describe_errors(
        **{name: options[name] for name in options if name in CHECKS}
    )
    wrong = error != ""
    harmless = [
        tf.where(wrong, tf.cast(HARMLESS.get(name, 0), value.dtype), value)
        if name in CHECKS
        else value
        for name, value in options.items()
    ]
    return [tf.where(wrong, "", text), *harmless], error


def describe_errors(**columns):
    """Returns what is wrong with each row's options, or `""`: string `(B,)`."""
    error = ""
    for name, value in reversed(columns.items()):  # The first is told.
        wanted, is_good = CHECKS[name]
        received = tf.strings.as_string(value)
        message = f"{name} must be {wanted}. Received: " + received
        error = tf.where(is_good(value), error, message)
    return error
