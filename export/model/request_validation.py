"""Validates the options of a request inside the graph."""

import tensorflow as tf

from export.model.request_splitting import MAX_BEAM_POSITIONS
from keras_transformer.search.tensorflow.search_loop import longest_limit

MAX_BEAM_SIZE = 100
# A larger one overflows float32 for long translations.
MAX_LENGTH_PENALTY = 10
MAX_EXTRA_LENGTH = 1_000
MAX_PENALTY_OFFSET = 1_000
# A search step compares this many tokens.
MAX_NO_REPEAT_NGRAM = 20
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.01, 100


def between(low, high):
    """Returns the allowed values in words, and a test of a number or a tensor."""
    return f"between {low} and {high}", lambda x: (x >= low) & (x <= high)


# NaN fails every test.
CHECKS = {
    "beam_size": between(1, MAX_BEAM_SIZE),
    "length_penalty": between(-MAX_LENGTH_PENALTY, MAX_LENGTH_PENALTY),
    "max_extra_length": between(0, MAX_EXTRA_LENGTH),
    "penalty_offset": between(0, MAX_PENALTY_OFFSET),
    "no_repeat_ngram": between(0, MAX_NO_REPEAT_NGRAM),
    "min_length": between(0, MAX_EXTRA_LENGTH),
    "temperature": between(MIN_TEMPERATURE, MAX_TEMPERATURE),
    "top_k": between(0, tf.int32.max),
    "top_p": ("above 0 and at most 1", lambda x: (x > 0) & (x <= 1)),
}
# Values that replace invalid ones, where 0 is invalid too.
VALID_DEFAULTS = {"temperature": 1, "top_p": 1}


def after_check(is_good, message: list, values):
    """Returns a structure of tensors; fails with one line if a check fails."""
    check = tf.debugging.Assert(is_good, message)
    # Nothing else may fail before the check, or broadcast an input.
    with tf.control_dependencies([check]):
        return tf.nest.map_structure(tf.identity, values)


def with_checked_options(text, **options):
    """Returns the inputs; fails with one line if an option is invalid."""
    values = [text, *options.values()]
    for name, value in options.items():
        wanted, is_good = CHECKS[name]
        message = [f"{name} must be {wanted}. Received:", value]
        values = after_check(is_good(value), message, values)
    return values


def with_equal_rows(**inputs):
    """Returns the inputs; fails with one line if their lengths differ."""
    rows = tf.stack([tf.shape(value)[0] for value in inputs.values()])
    message = [f"{', '.join(inputs)} must have as many rows each. Received:", rows]
    return after_check(tf.reduce_all(rows == rows[0]), message, [*inputs.values()])


def within_budget(checked, name: str, budget: int, rows, *factors):
    """Returns a structure; fails with one line if a request costs too much.

    The cost, which has a name, is the product of the `rows` and the factors. A
    single sentence is never refused.
    """
    cost = tf.cast(rows, tf.int64)
    for factor in factors:
        cost *= tf.cast(factor, tf.int64)
    message = f"{name} must be at most {budget}; send fewer or shorter rows at a time."
    is_good = (rows <= 1) | (cost <= budget)
    return after_check(is_good, [f"{message} Received:", cost], checked)


def check_beams(beam_size, positions, settings):
    """Returns the beam size, if the budgets allow it for rows of these positions."""
    longest = longest_limit(positions)
    beam_size = after_check(
        (beam_size <= settings.beam_size) | (beam_size * longest <= settings.budget),
        [
            "beam_size times the positions of a row, those of its tokens and of its "
            f"translation, must be at most {settings.budget}. Received:",
            *(beam_size, longest),
        ],
        beam_size,
    )
    return within_beam_positions(beam_size, MAX_BEAM_POSITIONS, beam_size, positions)


def within_beam_positions(checked, budget: int, beam_size, positions):
    """Returns a structure, if the rows' beams times positions are in the budget."""
    name = "rows times beam_size times positions"
    factors = beam_size, longest_limit(positions)
    return within_budget(checked, name, budget, tf.size(positions), *factors)


def with_invalid_rows_blanked(text, **options):
    """Replaces sentences whose options are invalid, to keep the rest intact.

    Returns:
        The texts, string `(B,)`, `""` in such rows; the dict of the options,
        each `(B,)`; and what is wrong with each row, or `""`, string `(B,)`.
    """
    text, *values = with_equal_rows(text=text, **options)
    options = dict(zip(options, values, strict=True))
    checked = {name: options[name] for name in options if name in CHECKS}
    error = ""
    for name, value in reversed(checked.items()):  # Report the first.
        wanted, is_good = CHECKS[name]
        received = tf.strings.as_string(value)
        message = f"{name} must be {wanted}. Received: " + received
        error = tf.where(is_good(value), error, message)
    wrong = error != ""
    for name, value in checked.items():
        valid = tf.cast(VALID_DEFAULTS.get(name, 0), value.dtype)
        options[name] = tf.where(wrong, valid, value)
    return tf.where(wrong, "", text), options, error
