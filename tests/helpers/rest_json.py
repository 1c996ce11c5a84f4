"""JSON of TF Serving's REST interface, by the rules of its `json_tensor.cc`."""

import base64
import json

import numpy as np
import tensorflow as tf

from tests.helpers.fake_servable import invalid


def read_request(body, signatures):
    """Returns the signature's name, the inputs, and whether they come by rows."""
    try:
        request = json.loads(body)
        name = request.get("signature_name", "serving_default")
        infos = signatures[name].inputs
        is_row = "instances" in request
        if is_row:
            columns = read_rows(request["instances"], infos)
        elif is_object(request["inputs"]):
            columns = request["inputs"]
        else:  # The value of the only input.
            columns = dict.fromkeys(infos, request["inputs"])
        return name, {n: to_array(columns[n], infos[n]) for n in infos}, is_row
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The server says what it misses in words of its own.
        raise invalid(f"JSON Parse error: {error!r}") from error


def read_rows(instances, infos):
    """Reads a list of values, or of objects that hold every input."""
    if not is_object(instances[0]):
        (name,) = infos
        return {name: instances}
    return {name: [row[name] for row in instances] for name in infos}


def is_object(value):
    return isinstance(value, dict) and list(value) != ["b64"]


def to_array(value, info):
    dtype = tf.dtypes.as_dtype(info.dtype).as_numpy_dtype
    return np.array(strings_to_bytes(value), dtype)


def strings_to_bytes(value):
    """Turns strings into bytes, in lists within lists, too."""
    if isinstance(value, list):
        return [strings_to_bytes(item) for item in value]
    if isinstance(value, dict):
        return base64.b64decode(value["b64"], validate=True)
    return value.encode() if isinstance(value, str) else value


def write_response(outputs, is_row):
    """Returns the JSON of tensors, as bytes; a single output has no name."""
    lists = {name: to_lists(value) for name, value in outputs.items()}
    if not is_row:
        columns = lists if len(lists) > 1 else next(iter(lists.values()))
        return json.dumps({"outputs": columns}).encode()
    rows = [
        dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)
    ]
    if len(lists) == 1:
        rows = [value for row in rows for value in row.values()]
    return json.dumps({"predictions": rows}).encode()


def to_lists(value):
    if isinstance(value, np.ndarray):
        return [to_lists(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    # A float32 is written with the digits that distinguish it.
    return float(str(value)) if isinstance(value, np.floating) else value.item()
