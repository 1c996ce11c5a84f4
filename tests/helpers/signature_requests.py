"""Requests that ask the same of a text whatever stands beside it, and their checks."""

import functools
import zlib

import numpy as np

from translate.runtime.signature_arrays import strings

# Floats differ in their last digits between batches of other sizes.
TOLERANCE = 1e-5
ALPHA, EXTRA = 0.6, 8  # Of the fixture's export.
PREFIXES = [b"", b"The", b"Two cats", b""]


def ask(texts):
    return {"text": strings(texts)}


def nbest_inputs(texts, beam_size=3, alpha=ALPHA, extra=EXTRA):
    return {
        **ask(texts),
        "beam_size": np.int32(beam_size),
        "length_penalty": np.float32(alpha),
        "max_extra_length": np.int32(extra),
    }


def options_inputs(texts, alpha=ALPHA, extra=EXTRA, prefixes=None):
    """Returns the inputs of `translate_options`; one number serves all rows."""
    return {
        **ask(texts),
        "length_penalty": floats(np.broadcast_to(alpha, len(texts))),
        "max_extra_length": ints(np.broadcast_to(extra, len(texts))),
        "prefix": strings(prefixes or [b""] * len(texts)),
    }


def checksums(texts):
    return np.array([zlib.crc32(text) for text in texts], np.int64)


def ask_options(texts):
    """One row in eight or so has an error."""
    n = checksums(texts)
    return options_inputs(texts, n % 4 / 2, n % 9 - 1, [PREFIXES[i] for i in n % 4])


def sample_inputs(texts, seeds, temperature=1.0, top_k=0, top_p=1.0):
    return {
        **ask(texts),
        "temperature": floats(np.broadcast_to(temperature, len(texts))),
        "top_k": ints(np.broadcast_to(top_k, len(texts))),
        "top_p": floats(np.broadcast_to(top_p, len(texts))),
        "seed": ints(np.broadcast_to(seeds, len(texts))),
    }


def ask_sample(texts):
    """One row in nine or so has an error."""
    n = checksums(texts)
    return sample_inputs(texts, n % 2**31, n % 3 / 2 + 0.5, n % 9 - 1, (1 + n % 4) / 4)


def ask_pair(texts):
    reverse = [b" ".join(text.split()[::-1]) for text in texts]
    return {"source": strings(texts), "target": strings(reverse)}


REQUESTS = {
    "serving_default": ask,
    "translate_nbest": functools.partial(nbest_inputs, alpha=0.8, extra=5),
    "translate_options": ask_options,
    "translate_document": ask,
    "sample": ask_sample,
    "score": ask_pair,
    "align": ask_pair,
    "explain": ask_pair,
    "explain_beam": ask,
}


def floats(values):
    return np.array(list(values), np.float32)


def ints(values):
    return np.array(list(values), np.int32)


def differences(found, expected):
    """Lists how a row beside other texts, maybe padded, differs from one alone."""
    if found.keys() != expected.keys():
        return [f"outputs {list(found)} and alone {list(expected)}"]
    return [
        f"{name}: {found[name]!r} and alone {expected[name]!r}"
        for name in expected.keys() - find_tied_outputs(expected)
        if not is_same(np.asarray(found[name]), np.asarray(expected[name]))
    ]


def assert_same(found, expected, atol=TOLERANCE):
    """Compares whole responses; `found` may lack outputs."""
    for name, value in found.items():
        if np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(value, expected[name], atol=atol, err_msg=name)
        else:
            np.testing.assert_array_equal(value, expected[name], name)


def find_tied_outputs(answer):
    """Returns the outputs of one text that rounding decides: it met a tie."""
    if "attention" in answer:
        best = np.sort(answer["attention"])[:, ::-1][:, :2]
        return {"alignment"} if has_ties(best) else set()
    if "log_probabilities" in answer:
        there = answer["parents"] >= 0
        values = np.where(there, answer["log_probabilities"], np.nan)
        others = set(answer) - {"log_probabilities"}
        return others if has_ties(values) else set()
    return set()


def has_ties(values):
    """Returns whether neighbors differ by no more than rounding."""
    apart = np.abs(np.diff(values))
    return bool((apart < 2 * TOLERANCE * (1 + np.abs(values[:, 1:]))).any())


def is_same(found, expected):
    inside = tuple(slice(size) for size in expected.shape)
    beyond = np.ones(found.shape, bool)
    beyond[inside] = False
    if np.shape(found[inside]) != expected.shape:
        return False
    if any(value not in (b"", 0, -1) for value in found[beyond]):
        return False
    if expected.dtype.kind == "f":
        return np.allclose(found[inside], expected, rtol=TOLERANCE, atol=TOLERANCE)
    return np.array_equal(found[inside], expected)


def to_rows(outputs):
    """Splits a dict of arrays along their first dimension."""
    names = list(outputs)
    return [
        dict(zip(names, row, strict=True))
        for row in zip(*outputs.values(), strict=True)
    ]


def invalid_outputs(outputs):
    """Returns what no answer may hold: NaN, infinity, or other than UTF-8."""
    found = []
    for name, value in outputs.items():
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            found.append(f"{name}: {value}")
        if value.dtype.kind == "O":
            texts = value.ravel()
            is_valid = [t.decode("utf-8", "ignore").encode() == t for t in texts]
            found += [f"{name}: {t!r}" for t in texts[~np.array(is_valid, bool)]]
    return found


def hypotheses_of_beam(beam):
    """Returns `(score, pieces)` of each hypothesis in `explain_beam`, best first."""
    paths, finished = {0: ()}, []
    for step, penalty_here in enumerate(beam["penalties"]):
        grown = {}
        for place in np.flatnonzero(beam["kept"][step]):
            path = paths[int(beam["parents"][step, place])]
            path = (*path, beam["tokens"][step, place].decode())
            if beam["ended"][step, place]:
                total = beam["log_probabilities"][step, place]
                finished.append((total / penalty_here, path))
            else:
                grown[int(place)] = path
        paths = grown
    return sorted(finished, key=lambda found: -found[0])
