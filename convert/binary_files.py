"""Reads the binary files of Marian and CTranslate2.

Sizes in a file are not trusted, as in `tensor_files`.
"""

import math
import pathlib
import struct
from typing import NamedTuple

import numpy as np

from command_line.errors import UserError, refuse_damage
from convert.tensor_files import Tensors, open_npz

CONFIGURATION = "special:model.yml"
MAX_AXES = 8  # Tensors of both have at most four.
# NumPy's types by their number in a file: in Marian's, in CTranslate2's.
# bfloat16 is the upper half of a float32.
MARIAN_TYPES = {0x404: "<f4", 0x4101: "i1", 0x101: "u1"}
TYPES = dict(enumerate(("<f4", "i1", "<i2", "<i4", "<f2", "<u2")))


class Entry(NamedTuple):
    """Where a tensor lies in a file."""

    path: pathlib.Path
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        """Number of bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def read(self) -> np.ndarray:
        count = math.prod(self.shape)
        array = np.fromfile(self.path, self.dtype, count, offset=self.start)
        return array.reshape(self.shape)


class BinaryReader:
    """Reads little-endian numbers, names and places of tensors, in order."""

    def __init__(self, path: pathlib.Path, types: dict[int, str]):
        self._content = memoryview(np.memmap(path, np.uint8, mode="r"))
        self._path, self._types, self._place = path, types, 0
        self.entries: dict[str, Entry] = {}
        self.length = len(self._content)

    def numbers(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(f"<{layout}", self._content, self._place)
        self._place += struct.calcsize(f"<{layout}")
        return found

    def number(self, layout: str) -> int:
        (found,) = self.numbers(layout)
        return found

    def text(self, length: int) -> str:
        content = bytes(self._content[self._place : self._place + length])
        self._place += length
        return content.rstrip(b"\0").decode()

    def shape(self, axes: int, layout: str) -> tuple[int, ...]:
        if axes > MAX_AXES:
            raise ValueError(f"a tensor of {axes} axes")
        return self.numbers(f"{axes}{layout}")

    def skip(self, size: int) -> None:
        self._place += size

    def tensor(self, name: str, type_: int, shape: tuple[int, ...], size: int) -> Entry:
        """Records a tensor that begins here, and goes to its end."""
        if name in self.entries:
            raise ValueError(f"two tensors are called {name}")
        if type_ not in self._types:
            raise ValueError(f"{name} is of type {type_:#x}")
        dtype = np.dtype(self._types[type_])
        entry = Entry(self._path, dtype, shape, self._place)
        if min(shape, default=1) < 0 or entry.size > size:
            raise ValueError(f"{name} of shape {shape} has {size} bytes")
        if self._place + size > self.length:
            raise ValueError(f"{name} goes beyond the file's end")
        self.entries[name] = entry
        self.skip(size)
        return entry


def open_marian(path: pathlib.Path) -> tuple[Tensors, bytes]:
    """Opens a model, `.npz` or `.bin`; also returns its configuration, YAML."""
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    tensors = open_npz(path) if path.suffix == ".npz" else open_marian_bin(path)
    if CONFIGURATION not in tensors:
        raise UserError(
            f"{path} must be a model of Marian. Received: no {CONFIGURATION}"
        )
    return tensors, tensors.read(CONFIGURATION).tobytes().rstrip(b"\0")


def open_marian_bin(path: pathlib.Path) -> Tensors:
    """Opens Marian's binary format, version 1."""
    kind = "Marian's binary"
    with refuse_damage(path, f", and {kind}"):
        entries = read_marian_entries(BinaryReader(path, MARIAN_TYPES))

    def read(name: str) -> np.ndarray:
        array = entries[name].read()
        if array.dtype != np.int8:
            return array
        if not name.endswith("Wemb"):  # The other tensors are transposed.
            array = array.reshape(array.shape[::-1]).T
        end = entries[name].start + array.size
        return array / np.fromfile(path, "<f4", 1, offset=end)

    shapes = {name: entry.shape for name, entry in entries.items()}
    return Tensors(path, kind, shapes, read)


def read_marian_entries(file: BinaryReader) -> dict[str, Entry]:
    version, count = file.numbers("2Q")
    if version != 1:
        raise ValueError(f"version {version}; version 1 is known")
    if count * struct.calcsize("<4Q") > file.length:
        raise ValueError(f"{count} tensors do not fit")
    # Length of the name, type, number of axes, bytes.
    headers = [file.numbers("4Q") for _ in range(count)]
    names = [file.text(length) for length, *_ in headers]
    shapes = [file.shape(axes, "i") for _, _, axes, _ in headers]
    file.skip(file.number("Q"))
    for name, shape, (_, type_, _, size) in zip(names, shapes, headers, strict=True):
        entry = file.tensor(name, type_, shape, size)
        if entry.dtype == np.int8 and entry.size + 4 > size:
            raise ValueError(f"{name} of shape {shape} has {size} bytes")
    return file.entries


def open_ctranslate2(path: pathlib.Path) -> tuple[Tensors, dict[str, int | float]]:
    """Opens `model.bin`, with quantized tensors as floats; also returns its options."""
    kind = "a Transformer of CTranslate2"
    with refuse_damage(path, f", and {kind}"):
        entries = read_ctranslate2_entries(BinaryReader(path, TYPES))

    def read_stored(name: str) -> np.ndarray:
        array = entries[name].read()
        if array.dtype == np.uint16:
            array = (array.astype(np.uint32) << 16).view(np.float32)
        return array

    def read(name: str) -> np.ndarray:
        array, scale = read_stored(name), f"{name}_scale"
        if scale not in entries:
            return array
        return array / read_stored(scale).reshape(-1, *[1] * (array.ndim - 1))

    shapes, options = {}, {}
    for name, entry in entries.items():
        if name.removesuffix("_scale") in entries and name.endswith("_scale"):
            continue
        if entry.shape:
            shapes[name] = entry.shape
        else:
            options[name] = read_stored(name).item()
    return Tensors(path, kind, shapes, read), options


def read_ctranslate2_entries(file: BinaryReader) -> dict[str, Entry]:
    version = file.number("I")
    if version != 6:
        raise ValueError(f"version {version}; version 6 is known")
    specification = file.text(file.number("H"))
    if specification != "TransformerSpec":
        raise ValueError(f"a model of {specification or 'no specification'}")
    file.number("I")  # Its revision: names of tensors say what is there.
    for _ in range(file.number("I")):
        name = file.text(file.number("H"))
        shape = file.shape(file.number("B"), "I")
        type_, size = file.numbers("BI")
        if file.tensor(name, type_, shape, size).size != size:
            raise ValueError(f"{name} of shape {shape} has {size} bytes")
    for _ in range(file.number("I")):
        alias, name = (file.text(file.number("H")) for _ in range(2))
        file.entries[alias] = file.entries[name]
    for name, entry in file.entries.items():
        scale = file.entries.get(f"{name}_scale")
        # One number, or one a row.
        if scale and math.prod(scale.shape) not in (1, *entry.shape[:1]):
            raise ValueError(f"{name}_scale is of shape {scale.shape}")
    return file.entries
