import json
import pathlib

import pytest

from command_line.errors import UserError
from command_line.recorded_search_options import check_decoding

PATH = pathlib.Path("run/arguments.json")


def read(text):
    return check_decoding(json.loads(text), PATH)


def test_only_what_is_said_is_known():
    assert read("{}") == {}
    found = read('{"length_penalty": 1, "other": "x"}')
    assert found == {"length_penalty": 1}


@pytest.mark.parametrize(
    ("decoding", "message"),
    [
        ("null", "decoding in run/arguments.json must be a JSON object.*None"),
        ("[4]", r"must be a JSON object. Received: \[4\]"),
        ('{"beam_size": "4"}', "beam_size of decoding.*an int.*'4'"),
        ('{"beam_size": 2.5}', "an int. Received: 2.5"),
        ('{"max_extra_length": true}', "max_extra_length.*an int.*True"),
        ('{"length_penalty": null}', "length_penalty.*a number.*None"),
        ('{"penalty_offset": NaN}', "penalty_offset.*a number.*nan"),
    ],
)
def test_refuses_what_is_no_number(decoding, message):
    with pytest.raises(UserError, match=message):
        read(decoding)
