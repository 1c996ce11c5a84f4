"""Tests of `export.bundle.samples`."""

import json

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import predict_pb2

from export.bundle import layout
from export.bundle.samples import differences


@pytest.fixture(scope="module")
def folder(export_dir):
    return export_dir / "1" / layout.SAMPLES


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def test_rows_are_answered_by_rows(folder, translate):
    request = read(folder, "rest_row.json")
    answer = read(folder, "rest_row.answer.json")

    outputs = translate(request["instances"])

    assert request["signature_name"] == "serving_default"
    assert len(answer["predictions"]) == len(request["instances"]) == 2
    for i, row in enumerate(answer["predictions"]):
        assert row == {
            "translation": outputs["translation"][i].numpy().decode(),
            "score": pytest.approx(outputs["score"][i].numpy(), abs=1e-3),
            "truncated": bool(outputs["truncated"][i]),
        }
    assert all(row["translation"] for row in answer["predictions"])


def test_columns_are_answered_by_columns(folder, translate):
    request = read(folder, "rest_columnar.json")
    answer = read(folder, "rest_columnar.answer.json")["outputs"]

    outputs = translate(request["inputs"]["text"])

    assert request["signature_name"] == "translate_options"
    assert request["inputs"]["length_penalty"] == [0.6, 0.6]
    assert request["inputs"]["max_extra_length"] == [8, 8]
    # With the options of the export, it does what the default does.
    expected = [text.decode() for text in outputs["translation"].numpy()]
    assert answer["translation"] == expected
    assert answer["error"] == ["", ""]
    assert {len(column) for column in answer.values()} == {2}


def test_grpc_means_the_same_to_the_server(folder, translate):
    request = predict_pb2.PredictRequest.FromString(
        (folder / "grpc.pb").read_bytes()
    )
    readable = text_format.Parse(
        (folder / "grpc.txt").read_text(), predict_pb2.PredictRequest()
    )
    answer = text_format.Parse(
        (folder / "grpc.answer.txt").read_text(), predict_pb2.PredictResponse()
    )

    outputs = translate(tf.make_ndarray(request.inputs["text"]))

    assert request == readable
    assert request.model_spec.name == "reverse"
    assert request.model_spec.signature_name == "serving_default"
    assert set(answer.outputs) == set(outputs)
    assert answer.outputs["translation"].string_val == [*outputs["translation"]]
    np.testing.assert_allclose(
        answer.outputs["score"].float_val, outputs["score"], atol=1e-3
    )


@pytest.mark.parametrize(
    ("received", "difference"),
    [
        ({"text": ["a", "b"], "score": [-1.5, 1000.2]}, []),
        (
            {"text": ["a", "c"], "score": [-1.5, 1000.2]},
            ["text, row 1: wanted 'b', received 'c'"],
        ),
        (
            {"text": ["a", "b"], "score": [-1.51, 1002.0]},
            [
                "score, row 0: wanted -1.5, received -1.51",
                "score, row 1: wanted 1000.0, received 1002.0",
            ],
        ),
        (
            {"text": ["a"], "score": [-1.5, 1000.0]},
            ["text: wanted 2 rows, received 1"],
        ),
        (
            {"text": ["a", "b"]},
            ["wanted outputs ['score', 'text'], received ['text']"],
        ),
        (
            {"text": [1, "b"], "score": [-1.5, 1000.0]},
            ["text, row 0: wanted 'a', received 1"],
        ),
    ],
)
def test_differences_are_told(received, difference):
    wanted = {"text": ["a", "b"], "score": [-1.5, 1000.0]}

    def arrays(columns):
        return {
            name: [x.encode() if isinstance(x, str) else x for x in column]
            for name, column in columns.items()
        }

    assert differences(arrays(wanted), arrays(received)) == difference
