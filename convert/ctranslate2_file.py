"""Reads the tensors of a CTranslate2 model, `model.bin`.

Sizes in a file are not trusted, as in `tensor_files`.
"""

import math
import pathlib
import struct
from typing import NamedTuple

import numpy as np

from command_line.errors import first_line
from convert.tensor_files import DAMAGED, MAX_AXES, Tensors, damaged_file_error

VERSION = 6
SPECIFICATION = "TransformerSpec"
# By the type's number; bfloat16 is the upper half of a float32.
TYPES = ("<f4", "i1", "<i2", "<i4", "<f2", "<u2")
BFLOAT16 = 5


class Entry(NamedTuple):
    """Where a tensor lies in the file."""

    kind: int
    shape: tuple[int, ...]
    start: int


class CTranslate2File(NamedTuple):
    """A model's tensors, and its options.

    Attributes:
        tensors: The tensors; quantized ones are read as floats.
        options: Dict of the numbers by name, ints or floats as they are.
        entries: Dict of `Entry` by name; tensors that are stored once have the
            same.
    """

    tensors: Tensors
    options: dict[str, int | float]
    entries: dict[str, Entry]


def open_ctranslate2(path: pathlib.Path) -> CTranslate2File:
    """Opens the file of an encoder-decoder model.

    Raises:
        UserError: If it is damaged, or of another version or kind of model.
    """
    try:
        content = np.memmap(path, np.uint8, mode="r")
        entries = read_entries(memoryview(content))
    except DAMAGED as error:
        raise damaged_file_error(
            path, "a Transformer of CTranslate2", first_line(error)
        ) from None
    scales = {f"{name}_scale" for name in entries if f"{name}_scale" in entries}

    def read_stored(name: str) -> np.ndarray:
        kind, shape, start = entries[name]
        count = math.prod(shape)
        array = np.fromfile(path, TYPES[kind], count, offset=start)
        if kind == BFLOAT16:
            array = (array.astype(np.uint32) << 16).view(np.float32)
        return array.reshape(shape)

    def read(name: str) -> np.ndarray:
        array = read_stored(name)
        if f"{name}_scale" not in scales:
            return array
        scale = read_stored(f"{name}_scale")  # One, or one for each row.
        return array / scale.reshape(-1, *[1] * (array.ndim - 1))

    shapes = {
        name: entry.shape
        for name, entry in entries.items()
        if entry.shape and name not in scales
    }
    options = {
        name: read_stored(name).item()
        for name, entry in entries.items()
        if not entry.shape and name not in scales
    }
    return CTranslate2File(Tensors(path, shapes, read), options, entries)


def read_entries(content: memoryview) -> dict[str, Entry]:
    """Returns where each tensor lies."""
    place = 0

    def unpack(layout: str) -> int:
        nonlocal place
        (number,) = struct.unpack_from(f"<{layout}", content, place)
        place += struct.calcsize(layout)
        return number

    def text() -> str:
        nonlocal place
        length = unpack("H")
        found = bytes(content[place : place + length]).rstrip(b"\0").decode()
        place += length
        return found

    version = unpack("I")
    if version != VERSION:
        raise ValueError(f"version {version}; version {VERSION} is known")
    specification = text()
    if specification != SPECIFICATION:
        raise ValueError(f"a model of {specification or 'no specification'}")
    unpack("I")  # Its revision: names of tensors say what is there.
    entries = {}
    for _ in range(unpack("I")):
        name = text()
        axes = unpack("B")
        if axes > MAX_AXES:
            raise ValueError(f"a tensor of {axes} axes")
        shape = tuple(unpack("I") for _ in range(axes))
        kind, size = unpack("B"), unpack("I")
        if kind >= len(TYPES):
            raise ValueError(f"{name} is of type {kind}")
        if math.prod(shape) * np.dtype(TYPES[kind]).itemsize != size:
            raise ValueError(f"{name} of shape {shape} has {size} bytes")
        if place + size > len(content):
            raise ValueError(f"{name} goes beyond the file's end")
        if name in entries:
            raise ValueError(f"two tensors are called {name}")
        entries[name] = Entry(kind, shape, place)
        place += size
    for _ in range(unpack("I")):
        alias, name = text(), text()
        entries[alias] = entries[name]
    check_scales(entries)
    return entries


def check_scales(entries: dict[str, Entry]) -> None:
    """Raises `ValueError` if a scale is neither one number nor one a row."""
    for name, entry in entries.items():
        scale = entries.get(f"{name}_scale")
        if scale is None:
            continue
        if math.prod(scale.shape) not in (1, *entry.shape[:1]):
            raise ValueError(f"{name}_scale is of shape {scale.shape}")
