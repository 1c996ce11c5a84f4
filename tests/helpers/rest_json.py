"""JSON of TF Serving's REST interface, by the rules of its `json_tensor.cc`."""

import base64
import json
import math

import grpc
import numpy as np
import tensorflow as tf

from tests.helpers.batching_session import ServerError

LARGEST_FLOAT = float(np.finfo(np.float32).max)


def refuse(message):
    raise ServerError(grpc.StatusCode.INVALID_ARGUMENT, message)


def read_request(body, signatures):
    """Turns the body of a request into tensors.

    Args:
        body: Bytes.
        signatures: Dict from name to SignatureDef.

    Returns:
        Name of the signature, dict from input to array, and whether the
        request is in the row format.
    """
    try:
        request = json.loads(body)
    except ValueError as error:
        refuse(f"JSON Parse error: {error}")
    if not isinstance(request, dict):
        refuse("JSON Value is not object")
    name = request.get("signature_name", "serving_default")
    if name not in signatures:
        refuse(f'Serving signature name: "{name}" not found in signature def')
    infos = signatures[name].inputs
    if ("instances" in request) == ("inputs" in request):
        refuse("Expecting one of 'inputs' or 'instances' keys")
    if "instances" in request:
        return name, read_rows(request["instances"], infos), True
    return name, read_columns(request["inputs"], infos), False


def read_rows(instances, infos):
    """Reads a list of values, or of objects that hold every input."""
    if not isinstance(instances, list) or not instances:
        refuse("Expecting 'instances' to be a list with values")
    named = is_object(instances[0])
    if not named and len(infos) > 1:
        refuse(
            "instances is a plain list, but expecting list of objects as "
            "multiple input tensors required as per tensorinfo_map"
        )
    for place, row in enumerate(instances):
        if is_object(row) != named:
            refuse(f"Expecting other kind at item {place} of input list")
        if named and set(row) != set(infos):
            refuse(
                f"Failed to process element: {place} of 'instances' list. "
                f"keys must be equal to: {','.join(sorted(infos))}"
            )
    if not named:
        (name,) = infos
        instances = [{name: row} for row in instances]
    # Unlike in the column format, no default and nothing left out.
    return {
        name: to_array([row[name] for row in instances], info)
        for name, info in infos.items()
    }


def read_columns(inputs, infos):
    """Reads the value of the only input, or an object of all inputs."""
    if not is_object(inputs):
        if len(infos) > 1:
            refuse(
                "inputs is a plain value/list, but expecting an object as "
                "multiple input tensors required as per tensorinfo_map"
            )
        (name,) = infos
        inputs = {name: inputs}
    for name in infos:  # What else is there is ignored.
        if name not in inputs:
            refuse(f"Missing named input: {name} in 'inputs' object.")
    return {name: to_array(inputs[name], infos[name]) for name in infos}


def is_object(value):
    return isinstance(value, dict) and not is_base64(value)


def is_base64(value):
    return (
        isinstance(value, dict)
        and list(value) == ["b64"]
        and isinstance(value["b64"], str)
    )


def to_array(value, info):
    """Turns nested lists into an array; the first of each gives its shape."""
    shape, first = [], value
    while isinstance(first, list):
        shape.append(len(first))
        first = first[0] if first else None
    dtype = tf.dtypes.as_dtype(info.dtype)
    flat = list(leaves(value, shape, dtype))
    array = np.empty(len(flat), dtype.as_numpy_dtype)
    array[:] = flat
    return array.reshape(shape)


def leaves(value, shape, dtype):
    """Yields the values in order; refuses ragged lists and other types."""
    if not shape:
        yield read_value(value, dtype)
        return
    if not isinstance(value, list) or len(value) != shape[0]:
        refuse(f"Encountered list at unexpected size: expected {shape[0]}")
    for item in value:
        yield from leaves(item, shape[1:], dtype)


def read_value(value, dtype):
    if dtype == tf.string:
        if is_base64(value):
            return base64.b64decode(value["b64"], validate=True)
        if isinstance(value, str):
            return value.encode()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        is_int32 = isinstance(value, int) and -(2**31) <= value < 2**31
        if dtype == tf.int32 and is_int32:
            return value
        if dtype == tf.float32:
            if math.isfinite(value) and abs(value) > LARGEST_FLOAT:
                refuse(f"JSON Value: {value} not lossless float")
            return value
    refuse(f"JSON Value: {value!r} is not of expected type: {dtype.name}")


def write_response(outputs, is_row):
    """Returns the JSON of tensors, as bytes; a single output has no name."""
    lists = {name: to_lists(value) for name, value in outputs.items()}
    if not is_row:
        columns = lists if len(lists) > 1 else next(iter(lists.values()))
        return json.dumps({"outputs": columns}).encode()
    sizes = {np.shape(value)[:1] for value in outputs.values()}
    if len(sizes) > 1 or () in sizes:
        refuse(f"Tensors have inconsistent batch sizes: {sizes}")
    rows = [
        dict(zip(lists, row, strict=True))
        for row in zip(*lists.values(), strict=True)
    ]
    if len(lists) == 1:
        rows = [value for row in rows for value in row.values()]
    return json.dumps({"predictions": rows}).encode()


def to_lists(value):
    if isinstance(value, np.ndarray):
        return [to_lists(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    # A float32 is written with the digits that tell it from others.
    return float(str(value)) if isinstance(value, np.floating) else value.item()
