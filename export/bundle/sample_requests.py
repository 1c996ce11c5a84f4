"""Writes and reads sample requests with the responses of the model.

`samples/` holds, for the REST interface, `SIGNATURE.json` and
`SIGNATURE.answer.json`, in TF Serving's column format.
"""

import json
import math
import pathlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from command_line.errors import UserError
from command_line.text_files import write_json

# Scores differ by about 1e-5 between machines.
DECIMALS = 4
TOLERANCE = 1e-3
ANSWER = ".answer.json"


class Sample(NamedTuple):
    """A request of a signature and the response: arrays by name."""

    signature: str
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]


def write_samples(
    folder: pathlib.Path,
    signatures: dict[str, Callable],
    inputs: dict[str, dict[str, np.ndarray]],
) -> None:
    """Runs a model on requests, and writes both requests and responses.

    `signatures` are functions by name, and `inputs` arrays by name of the
    signature and of the input. Outputs that are not finite, as with NaN weights,
    are refused.
    """
    for name, asked in inputs.items():
        outputs = {k: v.numpy() for k, v in signatures[name](**asked).items()}
        for key, value in outputs.items():
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                row = np.flatnonzero(~np.isfinite(value))[0]
                raise UserError(
                    "the model must give finite numbers to be exported. Received: "
                    f"{key} {value[row]} of {abbreviate(asked['text'][row])} ({name})"
                )
        request = {"signature_name": name, "inputs": as_json(asked)}
        write_json(folder / f"{name}.json", request)
        write_json(folder / f"{name}{ANSWER}", {"outputs": as_json(outputs)})


def as_json(tensors: dict[str, np.ndarray]) -> dict[str, list]:
    """Returns tensors `(B,)` as lists, strings decoded."""

    def convert(value):
        if isinstance(value, bytes):
            return value.decode()
        # Shows float32 0.6 as 0.6, not as 0.60000002.
        return round(value, DECIMALS) if isinstance(value, float) else value

    return {name: [*map(convert, value.tolist())] for name, value in tensors.items()}


def read_samples(folder: pathlib.Path, signatures) -> Iterator[Sample]:
    """Reads the samples in a folder, as the server's REST interface would.

    Types of inputs are those of `signatures`, `SignatureDef`s by name.
    """
    for path in sorted(folder.glob(f"*{ANSWER}")):
        name = path.name.removesuffix(ANSWER)
        request = json.loads((folder / f"{name}.json").read_text("utf-8"))
        infos = signatures[name].inputs
        inputs = {
            key: value.astype(tf.as_dtype(infos[key].dtype).as_numpy_dtype)
            for key, value in from_json(request["inputs"]).items()
        }
        outputs = json.loads(path.read_text("utf-8"))["outputs"]
        yield Sample(name, inputs, from_json(outputs))


def from_json(columns: dict[str, list]) -> dict[str, np.ndarray]:
    return {
        name: np.array(
            [x.encode() if isinstance(x, str) else x for x in column],
            object if isinstance(column[0], str) else None,
        )
        for name, column in columns.items()
    }


def describe_differences(
    expected: dict[str, np.ndarray], outputs: dict[str, np.ndarray]
) -> list[str]:
    """Describes the outputs that differ from the expected ones.

    Floats may differ by a thousandth; other types must be equal. A value that
    is not finite always counts as a difference.
    """
    if set(expected) != set(outputs):
        return [f"wanted outputs {sorted(expected)}, received {sorted(outputs)}"]
    found = []
    for name, wanted in sorted(expected.items()):
        received = outputs[name]
        if len(wanted) != len(received):
            found.append(f"{name}: wanted {len(wanted)} rows, received {len(received)}")
            continue
        for row, pair in enumerate(zip(wanted, received, strict=True)):
            if not is_close(*pair):
                wanted_text, received_text = map(abbreviate, pair)
                found.append(
                    f"{name}, row {row}: wanted {wanted_text}, received {received_text}"
                )
    return found


def is_close(wanted, received) -> bool:
    if isinstance(wanted, bytes) or isinstance(received, bytes):
        return wanted == received
    # `isclose` accepts equal infinities.
    return math.isfinite(wanted) and math.isclose(
        wanted, received, rel_tol=TOLERANCE, abs_tol=TOLERANCE
    )


def abbreviate(value) -> str:
    if isinstance(value, bytes):
        return repr(value.decode("utf-8", errors="replace"))
    return str(value)
