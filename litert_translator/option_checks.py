"""Refuses options and lists that are not as `Translator` takes them."""

import math
from numbers import Integral, Real

# The lowest value of each option, and its type.
OPTIONS = {
    **dict.fromkeys(("beam_size", "num_hypotheses", "num_threads"), (1, Integral)),
    **dict.fromkeys(("no_repeat_ngram", "min_length", "top_k"), (0, Integral)),
    "max_extra_length": (-math.inf, Integral),
    "penalty_offset": (0, Real),
    "length_penalty": (-math.inf, Real),
}


def complete(options: dict, known: dict, num_hypotheses: int) -> dict:
    """Returns all options of a search: those given, and of the others `known`."""
    if unknown := sorted(set(options) - set(known)):
        raise ValueError(
            f"Options must be of {', '.join(known)}. Received: {unknown[0]}"
        )
    check_numbers(num_hypotheses=num_hypotheses, **options)
    options = {**known, **options}
    if num_hypotheses > options["beam_size"]:
        raise ValueError(
            "`num_hypotheses` must be at most `beam_size`, "
            f"{options['beam_size']}. Received: {num_hypotheses}"
        )
    return options


def check_numbers(**given) -> None:
    """Refuses options that are out of range, by `OPTIONS`."""
    for name, value in given.items():
        lowest, kind = OPTIONS[name]
        # NaN is above nothing.
        if not (isinstance(value, kind) and lowest <= value < math.inf):
            wanted = "an int" if kind is Integral else "a finite number"
            if lowest > -math.inf:
                wanted += f", {lowest} or more"
            raise ValueError(f"`{name}` must be {wanted}. Received: {name}={value!r}")


def check_texts(**lists: list) -> None:
    """Refuses a string in the place of a list, and lists of different lengths."""
    for name, texts in lists.items():
        if isinstance(texts, str | bytes):
            raise ValueError(f"`{name}` must be a list. Received: {texts!r}")
    lengths = [*map(len, lists.values())]
    if len({*lengths}) > 1:
        names = " and ".join(f"`{name}`" for name in lists)
        received = " and ".join(map(str, lengths))
        raise ValueError(f"{names} must have the same length. Received: {received}")
