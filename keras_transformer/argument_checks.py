"""Checks of the layers' constructor arguments."""

import numbers


def check_positive_int(name, value):
    """Returns `value` as an int; raises `ValueError` unless it is above 0."""
    is_int = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_int or value <= 0:
        raise ValueError(f"`{name}` must be a positive int. Received: {name}={value!r}")
    return int(value)


def check_optional_positive_int(name, value):
    """Like `check_positive_int`; `None` stays."""
    return None if value is None else check_positive_int(name, value)


def check_positive_number(name, value):
    """Raises `ValueError` unless `value` is a number above 0."""
    if not isinstance(value, (int, float)) or not value > 0:
        raise ValueError(
            f"`{name}` must be a positive number. Received: {name}={value!r}"
        )


def check_fraction(name, value):
    """Raises `ValueError` unless `value` lies in [0, 1)."""
    if not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be a number in [0, 1). Received: {name}={value!r}"
        )


def check_choice(name, value, choices):
    """Raises `ValueError` unless `value` is one of `choices`."""
    if value not in choices:
        wanted = ", ".join(repr(choice) for choice in choices)
        raise ValueError(
            f"`{name}` must be one of {wanted}. Received: {name}={value!r}"
        )


def check_known_width(name, shape):
    """Raises `ValueError` if the last dimension of `shape` is unknown."""
    if shape[-1] is None:
        raise ValueError(
            f"The last dimension of `{name}` must be known. "
            f"Received: {name} of shape {tuple(shape)}"
        )


def check_sequences(**tensors):
    """Raises `ValueError` unless all tensors are of rank 3, or `None`."""
    for name, tensor in tensors.items():
        if tensor is not None and len(tensor.shape) != 3:
            raise ValueError(
                f"`{name}` must be of shape (batch, length, features). "
                f"Received: {name} of shape {tuple(tensor.shape)}"
            )


def check_ids(name, ids):
    """Raises `ValueError` unless `ids` is of rank 2."""
    if len(ids.shape) != 2:
        raise ValueError(
            f"`{name}` must be ids of shape (batch, length). "
            f"Received: {name} of shape {tuple(ids.shape)}"
        )


def check_length(name, ids, limit):
    """Raises `ValueError` if sequences are known to be longer than `limit`."""
    length = ids.shape[1]
    if isinstance(length, int) and length > limit:
        raise ValueError(
            f"`{name}` may have {limit} tokens at most, by `sequence_length`. "
            f"Received: length {length}"
        )


def check_search_number(name, value, minimum=0):
    """Raises `ValueError` for a float, or an int below `minimum`.

    Tensors pass, since their values may be unknown.
    """
    is_int = isinstance(value, numbers.Integral)
    if isinstance(value, numbers.Real) and (not is_int or value < minimum):
        raise ValueError(
            f"`{name}` must be an int, {minimum} or more. Received: {name}={value}"
        )


def static_int(value):
    """Returns an int or the value of an int tensor; `None` while tracing."""
    try:
        return int(value)
    except TypeError:
        return None
