"""Writes and reads sample requests with the responses of the model.

`samples/` holds, for the REST interface, `NAME.json` and `NAME.answer.json`;
for gRPC `NAME.pb`, a serialized `PredictRequest`, the same to read as
`NAME.txt`, and `NAME.answer.txt`, a `PredictResponse` in protobuf's text form.
`references.json` holds the reference translations, if there are any.
"""

import dataclasses
import json
import math
import pathlib
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse

from command_line.errors import UserError
from export.bundle.predict_messages import (
    add_tensors,
    make_request,
    read_tensors,
    serialize,
)

# Scores differ by about 1e-5 between machines.
DECIMALS = 4
TOLERANCE = 1e-3

ROW, COLUMNAR, GRPC = "rest_row", "rest_columnar", "grpc"


@dataclasses.dataclass(frozen=True)
class Sample:
    """A request and its response.

    Attributes:
        name: String, the name of its files without suffix.
        signature: String, the signature that is called.
        inputs: Dict from the name of an input to an array.
        outputs: Dict from the name of an output to an array.
    """

    name: str
    signature: str
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]


def write_samples(
    folder: pathlib.Path,
    model_name: str,
    signatures: dict[str, Callable],
    inputs: dict[str, dict[str, np.ndarray]],
) -> None:
    """Runs a model on requests, and writes both requests and responses.

    Args:
        folder: Folder to write into; it must exist.
        model_name: The name that the server gives the model.
        signatures: Functions from tensors to a dict of tensors, by name.
        inputs: Arrays by name of the signature and of the input.

    Raises:
        UserError: If an output of the model is not finite.
    """
    for name, signature in (
        (ROW, "serving_default"),
        (COLUMNAR, "translate_options"),
        (GRPC, "serving_default"),
    ):
        if signature not in inputs:  # The export does not have this signature.
            continue
        asked = inputs[signature]
        # The text form is readable only for arrays of one element.
        if name == GRPC:
            asked = {key: value[:1] for key, value in asked.items()}
        outputs = {
            key: round_floats(value.numpy())
            for key, value in signatures[signature](**asked).items()
        }
        check_finite(name, asked["text"], outputs)
        sample = Sample(name, signature, asked, outputs)
        if name == GRPC:
            write_grpc(folder, model_name, sample)
        else:
            write_rest(folder, sample)


def check_finite(name: str, text: np.ndarray, outputs: dict) -> None:
    """Refuses outputs that are not finite, as NaN weights give."""
    for key, value in outputs.items():
        if value.dtype.kind != "f":
            continue
        for line, number in zip(text, value, strict=True):
            if not math.isfinite(number):
                raise UserError(
                    "the model must give finite numbers to be exported. "
                    f"Received: {key} {number} of {abbreviate(line)} ({name})"
                )


def round_floats(array: np.ndarray) -> np.ndarray:
    return array.round(DECIMALS) if array.dtype.kind == "f" else array


def write_rest(folder: pathlib.Path, sample: Sample) -> None:
    """Writes a sample as JSON, in row or column format."""
    inputs, outputs = as_json(sample.inputs), as_json(sample.outputs)
    if sample.name == ROW:
        # A signature with one input takes bare values.
        (rows,) = inputs.values()
        request = {"instances": rows}
        answer = {"predictions": rows_of(outputs)}
    else:
        request, answer = {"inputs": inputs}, {"outputs": outputs}
    request = {"signature_name": sample.signature, **request}
    for suffix, content in ((".json", request), (".answer.json", answer)):
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (folder / (sample.name + suffix)).write_text(text, encoding="utf-8")


def as_json(tensors: dict[str, np.ndarray]) -> dict[str, list]:
    """Returns tensors `(B,)` as lists, strings decoded."""
    columns = {}
    for name, value in tensors.items():
        if value.dtype == object:
            columns[name] = [text.decode() for text in value]
        elif value.dtype.kind == "f":
            # Shows float32 0.6 as 0.6, not as 0.60000002.
            columns[name] = [round(float(x), DECIMALS) for x in value]
        else:
            columns[name] = value.tolist()
    return columns


def rows_of(columns: dict[str, list]) -> list[dict]:
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def write_grpc(folder: pathlib.Path, model_name: str, sample: Sample) -> None:
    """Writes a sample as protobuf messages."""
    request = make_request(model_name, sample.signature, sample.inputs)
    response = PredictResponse()
    add_tensors(response.outputs, sample.outputs)
    stem = folder / sample.name
    stem.with_suffix(".pb").write_bytes(serialize(request))
    for suffix, message in ((".txt", request), (".answer.txt", response)):
        text = text_format.MessageToString(message, as_utf8=True)
        stem.with_suffix(suffix).write_text(text, encoding="utf-8")


def read_samples(folder: pathlib.Path, signatures) -> Iterator[Sample]:
    """Reads the samples of a version.

    Args:
        folder: `samples/` of the version.
        signatures: `SignatureDef`s by name: JSON in row format does not name
            the input.
    """
    for name in (ROW, COLUMNAR):
        if name == COLUMNAR and "translate_options" not in signatures:
            continue
        yield read_rest(folder, name, signatures)
    yield read_grpc(folder)


def read_rest(folder: pathlib.Path, name: str, signatures) -> Sample:
    """Reads a sample as the server's REST interface would."""
    request, answer = (
        json.loads((folder / f"{name}{suffix}").read_text(encoding="utf-8"))
        for suffix in (".json", ".answer.json")
    )
    signature = signatures[request["signature_name"]]
    if name == ROW:
        (key,) = signature.inputs
        inputs = {key: request["instances"]}
        rows = answer["predictions"]
        outputs = {key: [row[key] for row in rows] for key in rows[0]}
    else:
        inputs, outputs = request["inputs"], answer["outputs"]
    # The server accepts these types only.
    inputs = {
        key: value.astype(dtype_of(signature.inputs[key]))
        for key, value in from_json(inputs).items()
    }
    return Sample(name, request["signature_name"], inputs, from_json(outputs))


def dtype_of(tensor_info) -> type:
    return tf.as_dtype(tensor_info.dtype).as_numpy_dtype


def from_json(columns: dict[str, list]) -> dict[str, np.ndarray]:
    return {
        name: np.array(
            [x.encode() if isinstance(x, str) else x for x in column],
            object if isinstance(column[0], str) else None,
        )
        for name, column in columns.items()
    }


def read_grpc(folder: pathlib.Path) -> Sample:
    request = PredictRequest.FromString((folder / f"{GRPC}.pb").read_bytes())
    response = text_format.Parse(
        (folder / f"{GRPC}.answer.txt").read_text(encoding="utf-8"), PredictResponse()
    )
    return Sample(
        GRPC,
        request.model_spec.signature_name,
        read_tensors(request.inputs),
        read_tensors(response.outputs),
    )


def describe_differences(
    expected: dict[str, np.ndarray], outputs: dict[str, np.ndarray]
) -> list[str]:
    """Describes the outputs that differ from the expected ones.

    Floats may differ by a thousandth; other types must be equal. A value that
    is not finite always counts as a difference.
    """
    if set(expected) != set(outputs):
        wanted, received = sorted(expected), sorted(outputs)
        return [f"wanted outputs {wanted}, received {received}"]
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
