"""Converts between texts and the arrays of signatures."""

from collections.abc import Iterable

import numpy as np

from command_line.errors import UserError

# The types of the outputs that the commands read.
OUTPUT_KINDS = {"translation": "O", "truncated": "b"}


def check_outputs(outputs: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
    """Returns the outputs if they have the expected names, types and shapes.

    Raises:
        UserError: If they do not.
    """
    for name, kind in OUTPUT_KINDS.items():
        found = np.asarray(outputs.get(name))
        if found.dtype.kind != kind or found.shape != (rows,):
            raise UserError(
                "--export-dir or --server must be of a translation model. "
                f"Received: an answer without `{name}` for each text"
            )
    return outputs


def strings(texts: Iterable[str | bytes]) -> np.ndarray:
    """Returns UTF-8 strings as an array `(B,)`."""
    encoded = [t.encode() if isinstance(t, str) else t for t in texts]
    array = np.empty(len(encoded), object)
    array[:] = encoded
    return array


def decode_line(text: bytes) -> str:
    # A model may generate line ends; a sentence has none.
    return " ".join(text.decode("utf-8", "replace").splitlines())
