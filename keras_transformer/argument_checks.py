"""Checks of the arguments of layers and models."""

import difflib
import inspect
import numbers
import pathlib
from typing import ClassVar

import keras
import numpy as np

HIDDEN = {"self", "args", "kwargs"}


class KnownArguments:
    """Names the nearest argument where a constructor is given another.

    It does so before Python reports which arguments are missing.
    """

    arguments_of_parts: ClassVar[dict[str, str]] = {}  # And how the message says each.

    def __new__(cls, *args, **kwargs):
        # The constructor of a user's subclass may take any name.
        if cls.__init__.__module__.startswith("keras_transformer."):
            check_argument_names(cls, kwargs)
        return super().__new__(cls, *args, **kwargs)


def check_argument_names(cls, given):
    """Raises `ValueError` if no constructor of `cls` has an argument of a name."""
    names = {"input_shape", "input_dim"}  # As a layer of Keras.
    offered = dict(cls.arguments_of_parts)
    for base in cls.__mro__[:-1]:
        if "__init__" not in vars(base):
            continue
        own = inspect.signature(base.__init__).parameters.keys()
        names |= own
        if base.__module__.startswith("keras_transformer."):
            offered |= {name: f"`{name}`" for name in own - HIDDEN}
    for name in given.keys() - names:
        near = difflib.get_close_matches(name, offered, n=1) or sorted(offered)
        raise ValueError(
            f"`{cls.__name__}` has no argument `{name}`, but "
            f"{', '.join(offered[other] for other in near)}. "
            f"Received: {name}={given[name]!r}"
        )


def check_run_file(run_dir, name):
    """Returns the path of a file of a run folder; raises if there is none."""
    path = pathlib.Path(run_dir, name)
    if not path.exists():
        raise ValueError(
            "`run_dir` must be the folder of a finished run. "
            f"Received: run_dir={str(run_dir)!r}, which has no {name}. A model of "
            "another system is first converted: python -m convert hugging-face "
            "--model-dir DOWNLOADED --run-dir CONVERTED (see docs/how_to/pretrained.md)"
        )
    return path


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


def check_sequence_shape(name, shape):
    """Raises `ValueError` unless `shape` has rank 3 and a known width."""
    if len(shape) != 3:
        raise ValueError(
            f"`{name}` must be of shape (batch, length, features). "
            f"Received: {name} of shape {tuple(shape)}"
        )
    check_known_width(name, shape)


def check_known_width(name, shape):
    """Raises `ValueError` if the last dimension of `shape` is unknown."""
    if shape[-1] is None:
        raise ValueError(
            f"The last dimension of `{name}` must be known. "
            f"Received: {name} of shape {tuple(shape)}"
        )


def check_rank_3(**tensors):
    """Raises `ValueError` unless all tensors are of rank 3, or `None`."""
    for name, tensor in tensors.items():
        if tensor is not None and len(tensor.shape) != 3:
            raise ValueError(
                f"`{name}` must be of shape (batch, length, features). "
                f"Received: {name} of shape {tuple(tensor.shape)}"
            )


def check_ids(name, ids, vocabulary_size):
    """Raises `ValueError` unless `ids` are of rank 2 and in the vocabulary."""
    received, shape, values = f"type {type(ids).__name__}", (), None
    if hasattr(ids, "shape"):
        shape, values = tuple(ids.shape), known_values(ids)
        received = f"shape {shape}, dtype {ids.dtype}"
    is_text = values is not None and values.dtype.kind in "OSU"
    if len(shape) != 2 or is_text:
        if hasattr(ids, "to_tensor"):
            received += ", ragged: call its `to_tensor()`"
        raise ValueError(
            f"`{name}` must be ids of shape (batch, length), padded with 0. "
            f"Received: {name} of {received}"
        )
    check_vocabulary(name, values, vocabulary_size)


def ids_tensor(name, ids, vocabulary_size):
    """Returns ids, which may be lists, as a tensor; refuses what `check_ids` does."""
    values = known_values(ids) if isinstance(ids, list) else ids
    ids = ids if values is None else values  # Lists of different lengths have none.
    check_ids(name, ids, vocabulary_size)
    return keras.ops.convert_to_tensor(ids)


def check_vocabulary(name, values, vocabulary_size):
    """Raises `ValueError` if ids are known and not in the vocabulary."""
    if values is None or not values.size:
        return
    for value in (values.min(), values.max(), *values[values % 1 != 0][:1]):
        if value % 1 or not 0 <= value < vocabulary_size:
            raise ValueError(
                f"`{name}` must be ids of the vocabulary, from 0 to "
                f"{vocabulary_size - 1}. Received: {name} with {value}"
            )


def known_values(x):
    """Returns the array of a tensor or list; `None` in a compiled function.

    Tensors of torch are left to torch: a GPU would have to be waited for.
    """
    if keras.backend.backend() == "torch" and keras.ops.is_tensor(x):
        return None
    try:
        return np.asarray(x)
    except (TypeError, ValueError, NotImplementedError):
        return None


def check_labels(y_true, y_pred):
    """Raises `ValueError` unless each label has its logits, where sizes are known."""
    labels, logits = tuple(np.shape(y_true)), tuple(np.shape(y_pred))
    sizes = zip(labels, logits, strict=False)
    if len(labels) + 1 != len(logits) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in sizes
    ):
        raise ValueError(
            "`y_true` must be labels of the shape of `y_pred` without its last axis. "
            f"Received: y_true of shape {labels}, y_pred of shape {logits}. Of "
            "sequences from BOS to EOS, the targets are ids[:, :-1] and the labels "
            "are ids[:, 1:]"
        )


def check_length(name, ids, limit):
    """Raises `ValueError` if sequences are known to be longer than `limit`."""
    length = ids.shape[1]
    if isinstance(length, int) and length > limit:
        raise ValueError(
            f"`{name}` may have {limit} tokens at most, by `sequence_length`. "
            f"Received: length {length}"
        )


def check_search_int(name, value, minimum=0):
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
