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
    """A request and its response: arrays by name, and the name of its files."""

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

    `signatures` are functions by name, and `inputs` arrays by name of the
    signature and of the input. Outputs that are not finite, as with NaN weights,
    are refused.
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
        outputs = {}
        for key, value in signatures[signature](**asked).items():
            outputs[key] = value = value.numpy()
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                row = np.flatnonzero(~np.isfinite(value))[0]
                raise UserError(
                    "the model must give finite numbers to be exported. Received: "
                    f"{key} {value[row]} of {abbreviate(asked['text'][row])} ({name})"
                )
        sample = Sample(name, signature, asked, outputs)
        if name == GRPC:
            write_grpc(folder, model_name, sample)
        else:
            write_rest(folder, sample)


def write_rest(folder: pathlib.Path, sample: Sample) -> None:
    """Writes a sample as JSON, in row or column format."""
    request, answer = as_json(sample.inputs), as_json(sample.outputs)
    if sample.name == ROW:
        # A signature with one input takes bare values.
        (rows,) = request.values()
        request = {"instances": rows}
        rows = zip(*answer.values(), strict=True)
        answer = {"predictions": [dict(zip(answer, row, strict=True)) for row in rows]}
    else:
        request, answer = {"inputs": request}, {"outputs": answer}
    request = {"signature_name": sample.signature, **request}
    for suffix, content in ((".json", request), (".answer.json", answer)):
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (folder / (sample.name + suffix)).write_text(text, encoding="utf-8")


def as_json(tensors: dict[str, np.ndarray]) -> dict[str, list]:
    """Returns tensors `(B,)` as lists, strings decoded."""

    def convert(value):
        if isinstance(value, bytes):
            return value.decode()
        # Shows float32 0.6 as 0.6, not as 0.60000002.
        return round(value, DECIMALS) if isinstance(value, float) else value

    return {name: [*map(convert, value.tolist())] for name, value in tensors.items()}


def write_grpc(folder: pathlib.Path, model_name: str, sample: Sample) -> None:
    """Writes a sample as protobuf messages."""
    request = make_request(model_name, sample.signature, sample.inputs)
    response = PredictResponse()
    rounded = {
        name: value.round(DECIMALS) if value.dtype.kind == "f" else value
        for name, value in sample.outputs.items()
    }
    add_tensors(response.outputs, rounded)
    stem = folder / sample.name
    stem.with_suffix(".pb").write_bytes(serialize(request))
    for suffix, message in ((".txt", request), (".answer.txt", response)):
        text = text_format.MessageToString(message, as_utf8=True)
        stem.with_suffix(suffix).write_text(text, encoding="utf-8")


def read_samples(folder: pathlib.Path, signatures) -> Iterator[Sample]:
    """Reads the samples in a folder; JSON needs the inputs of `signatures`."""
    yield read_rest(folder, ROW, signatures)
    if "translate_options" in signatures:
        yield read_rest(folder, COLUMNAR, signatures)
    request = PredictRequest.FromString((folder / f"{GRPC}.pb").read_bytes())
    response = text_format.Parse(
        (folder / f"{GRPC}.answer.txt").read_text(encoding="utf-8"), PredictResponse()
    )
    yield Sample(
        GRPC,
        request.model_spec.signature_name,
        read_tensors(request.inputs),
        read_tensors(response.outputs),
    )


def read_rest(folder: pathlib.Path, name: str, signatures) -> Sample:
    """Reads a sample as the server's REST interface would."""
    request, answer = (
        json.loads((folder / f"{name}{suffix}").read_text(encoding="utf-8"))
        for suffix in (".json", ".answer.json")
    )
    infos = signatures[request["signature_name"]].inputs
    if name == ROW:
        (key,) = infos
        inputs = {key: request["instances"]}
        rows = answer["predictions"]
        outputs = {key: [row[key] for row in rows] for key in rows[0]}
    else:
        inputs, outputs = request["inputs"], answer["outputs"]
    # The server accepts these types only.
    inputs = {
        key: value.astype(tf.as_dtype(infos[key].dtype).as_numpy_dtype)
        for key, value in from_json(inputs).items()
    }
    return Sample(name, request["signature_name"], inputs, from_json(outputs))


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
