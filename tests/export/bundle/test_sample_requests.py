"""Tests of `export.bundle.sample_requests`."""

import json
import math

import numpy as np
import pytest

from export.bundle import file_layout
from export.bundle.predict_messages import make_request, serialize
from export.bundle.sample_requests import describe_differences


@pytest.fixture(scope="module")
def folder(export_dir):
    return export_dir / "1" / file_layout.SAMPLES


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def test_rest_is_asked_by_rows_and_by_columns(folder):
    rows, columns = read(folder, "rest_row"), read(folder, "rest_columnar")
    answered = read(folder, "rest_row.answer")["predictions"]
    outputs = read(folder, "rest_columnar.answer")["outputs"]

    assert rows["signature_name"] == "serving_default"
    assert columns["signature_name"] == "translate_options"
    assert rows["instances"] == columns["inputs"]["text"]
    assert columns["inputs"]["length_penalty"] == [0.6, 0.6]
    assert columns["inputs"]["max_extra_length"] == [8, 8]
    # With the options of the export, it does what the default does.
    found = [row["translation"] for row in answered]
    assert outputs["translation"] == found
    assert outputs["error"] == ["", ""]
    assert all(found)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"score": [-1.5, 1000.2]}, []),
        ({"text": ["a", "c"]}, ["text, row 1: wanted 'b', received 'c'"]),
        ({"text": [1, "b"]}, ["text, row 0: wanted 'a', received 1"]),
        ({"text": ["a"]}, ["text: wanted 2 rows, received 1"]),
        (
            {"score": [-1.51, math.nan]},
            [
                "score, row 0: wanted -1.5, received -1.51",
                "score, row 1: wanted 1000.0, received nan",
            ],
        ),
        ({"more": []}, ["wanted outputs ['score', 'text'], received "]),
    ],
)
def test_differences_are_told(changes, difference):
    wanted = {"text": ["a", "b"], "score": [-1.5, 1000.0]}

    def arrays(columns):
        return {
            name: [x.encode() if isinstance(x, str) else x for x in column]
            for name, column in columns.items()
        }

    found = describe_differences(arrays(wanted), arrays({**wanted, **changes}))

    for line, begins in zip(found, difference, strict=True):
        assert line.startswith(begins)


@pytest.mark.parametrize("number", [-math.inf, math.inf, math.nan])
def test_what_is_no_number_is_never_right(number):
    outputs = {"score": np.array([number])}

    assert describe_differences(outputs, outputs) == [
        f"score, row 0: wanted {number}, received {number}"
    ]


def test_equal_tensors_give_equal_bytes():
    # Of few names a map may happen to keep one order.
    names = [f"input {number}" for number in range(50)]
    messages = {
        serialize(make_request("mine", "", dict.fromkeys(order, np.ones(1))))
        for order in (names, names[::-1])
    }

    assert len(messages) == 1
