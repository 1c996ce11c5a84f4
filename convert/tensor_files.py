"""Reads named tensors from safetensors, NPZ and Marian's binary files.

Sizes in a file are not trusted: a tensor that does not fit the file's size is
refused before memory is allocated for it.
"""

import dataclasses
import json
import lzma
import math
import pathlib
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable

import numpy as np

from command_line.errors import UserError, first_line

CONFIGURATION = "special:model.yml"
FLOAT32, INT8, BYTES = 0x404, 0x4101, 0x101  # Marian's type codes.
# Length of the name, type code, number of axes, bytes.
HEADER = struct.Struct("<4Q")
MAX_PACKED = 8  # Compression never shrinks weights to an eighth.
CHUNK_ELEMENTS = 2**22  # Elements that are read at a time.
MAX_AXES = 8  # Maximum axes of a tensor; Marian's have at most four.

# Errors of NumPy, `zipfile` and `struct` at a damaged file.
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError),
    *(OSError, RecursionError),
    *(ValueError, KeyError, EOFError, NotImplementedError, RuntimeError),
    *(struct.error, SyntaxError, MemoryError, OverflowError, TypeError),
)


@dataclasses.dataclass
class Tensors:
    """The tensors of a file, each of which is read once.

    Attributes:
        path: Path of the file.
        shapes: Dict from name to shape.
    """

    path: pathlib.Path
    shapes: dict[str, tuple[int, ...]]
    _read: Callable[[str], np.ndarray]

    def __post_init__(self):
        self._left = set(self.shapes)

    def __contains__(self, name: str) -> bool:
        return name in self.shapes

    @property
    def num_elements(self) -> int:
        """Number of elements of all tensors."""
        return sum(map(math.prod, self.shapes.values()))

    def check(self, name: str, shape: tuple[int, ...]) -> None:
        """Refuses a file without a tensor, or with one of another shape."""
        if name not in self.shapes:
            raise UserError(
                f"{self.path} must hold the tensor {name}. Received: "
                f"{len(self.shapes)} tensors without it"
            )
        if self.shapes[name] != shape:
            raise UserError(
                f"{name} of {self.path} must be of shape {shape}. "
                f"Received: {self.shapes[name]}"
            )

    def take(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Returns a tensor in float32.

        Raises:
            UserError: If it is missing, has another shape, or is not finite.
        """
        self.check(name, shape)
        self._left.discard(name)
        # Numbers beyond float32 become infinite.
        with np.errstate(all="ignore"):
            array = np.asarray(self._read(name), np.float32)
        if not np.isfinite(array).all():
            raise UserError(
                f"{name} of {self.path} must be of finite numbers. Received: "
                f"{int((~np.isfinite(array)).sum())} that are not"
            )
        return array

    def ignore(self, *names: str) -> None:
        """Marks tensors as not needed."""
        self._left.difference_update(names)

    def check_all_taken(self) -> None:
        """Refuses tensors that were not taken, whose purpose is unknown."""
        if self._left:
            raise UserError(
                f"{self.path} must hold tensors that are known here. "
                f"Received: {', '.join(sorted(self._left))}"
            )


def open_safetensors(path: pathlib.Path) -> Tensors:
    """Opens a file of the safetensors library."""
    import safetensors

    # Open the file for each part: while it is open, pages that were read
    # count as this process's memory.
    def open_file():
        return safetensors.safe_open(path, framework="numpy")

    try:
        with open_file() as file:
            shapes = {
                name: tuple(file.get_slice(name).get_shape())
                for name in file.keys()  # noqa: SIM118  It is no dict.
            }
    except (safetensors.SafetensorError, ValueError, UnicodeError) as error:
        raise damaged_file_error(path, "safetensors", first_line(error)) from None

    def read_rows(name: str, start: int, end: int) -> np.ndarray:
        with open_file() as file:
            return file.get_slice(name)[start:end]

    def read(name: str) -> np.ndarray:
        size, *width = shapes[name] or (1,)
        step = max(1, CHUNK_ELEMENTS // max(1, math.prod(width)))
        try:
            if size <= step:
                with open_file() as file:
                    return file.get_tensor(name)
            array = np.empty(shapes[name], read_rows(name, 0, 1).dtype)
            for start in range(0, size, step):
                end = min(start + step, size)
                array[start:end] = read_rows(name, start, end)
        except (TypeError, ValueError, safetensors.SafetensorError) as error:
            raise damaged_file_error(path, "NumPy's types", first_line(error)) from None
        return array

    return Tensors(path, shapes, read)


def open_marian(path: pathlib.Path) -> tuple[Tensors, bytes]:
    """Opens a model of Marian, `.npz` or `.bin`.

    Returns:
        Its tensors, and its configuration, YAML.
    """
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    tensors = open_npz(path) if path.suffix == ".npz" else open_marian_bin(path)
    if CONFIGURATION not in tensors:
        raise damaged_file_error(path, "a model of Marian", f"no {CONFIGURATION}")
    configuration = tensors._read(CONFIGURATION).tobytes().rstrip(b"\0")
    tensors.ignore(CONFIGURATION)
    return tensors, configuration


def open_npz(path: pathlib.Path) -> Tensors:
    """Opens a NumPy archive."""
    try:
        archive = zipfile.ZipFile(path)
        infos = {
            info.filename.removesuffix(".npy"): info for info in archive.infolist()
        }
        if len(infos) < len(archive.infolist()):
            raise ValueError("two tensors of one name")
        check_unpacked_size(infos.values(), path)
        headers = {name: read_header(archive, info) for name, info in infos.items()}
    except DAMAGED as error:
        raise damaged_file_error(path, "a NumPy archive", first_line(error)) from None

    def read(name: str) -> np.ndarray:
        shape, is_fortran, dtype, start = headers[name]
        try:
            with archive.open(infos[name]) as file:
                file.read(start)
                array = np.frombuffer(file.read(), dtype)
            return array.reshape(shape, order="F" if is_fortran else "C")
        except DAMAGED as error:
            raise damaged_file_error(
                path, "a NumPy archive", first_line(error)
            ) from None

    return Tensors(path, {n: h[0] for n, h in headers.items()}, read)


def check_unpacked_size(infos: Iterable[zipfile.ZipInfo], path: pathlib.Path) -> None:
    """Raises `ValueError` if an archive would unpack to much more than weights.

    Args:
        infos: The members of the archive.
        path: Path of the archive.
    """
    size = sum(info.file_size for info in infos)
    if size > MAX_PACKED * path.stat().st_size:
        raise ValueError("it would unpack to more than eight times itself")


def read_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple:
    """Returns shape, order, dtype and offset of an array."""
    with archive.open(info) as file, warnings.catch_warnings():
        # NumPy warns about a header that Python 2 wrote.
        warnings.simplefilter("ignore")
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, is_fortran, dtype = read(file)
        start = file.tell()
    size = math.prod(shape) * dtype.itemsize
    if dtype.kind not in "fiu" or min(shape, default=1) < 0:
        raise ValueError(f"{info.filename} is of {dtype} in shape {shape}")
    if size != info.file_size - start:
        raise ValueError(f"{info.filename} is not as long as it says")
    return shape, is_fortran, dtype, start


def open_marian_bin(path: pathlib.Path) -> Tensors:
    """Opens Marian's binary format, version 1."""
    try:
        content = np.memmap(path, np.uint8, mode="r")
        entries = read_entries(memoryview(content))
    except DAMAGED as error:
        raise damaged_file_error(path, "Marian's binary", first_line(error)) from None

    def read(name: str) -> np.ndarray:
        kind, shape, start, size = entries[name]
        count = math.prod(shape)
        if kind == BYTES:
            return np.fromfile(path, np.uint8, size, offset=start)
        if kind == FLOAT32:
            numbers = np.fromfile(path, "<f4", count, offset=start)
            return numbers.reshape(shape)
        numbers = np.fromfile(path, np.int8, count, offset=start)
        if not name.endswith("Wemb"):  # The other tensors are transposed.
            numbers = numbers.reshape(shape[::-1]).T
        (factor,) = np.fromfile(path, "<f4", 1, offset=start + count)
        return numbers.reshape(shape) / factor

    return Tensors(path, {n: e[1] for n, e in entries.items()}, read)


def read_entries(content: memoryview) -> dict[str, tuple]:
    """Returns type, shape, offset and bytes of each tensor."""
    version, count = struct.unpack_from("<2Q", content)
    place = 16
    if version != 1:
        raise ValueError(f"version {version}; version 1 is known")
    if count * HEADER.size > len(content):
        raise ValueError(f"{count} tensors do not fit")
    headers = [
        HEADER.unpack_from(content, place + i * HEADER.size) for i in range(count)
    ]
    place += count * HEADER.size
    names = []
    for length, *_ in headers:
        names.append(bytes(content[place : place + length]).rstrip(b"\0"))
        place += length
    shapes = []
    for _, _, axes, _ in headers:
        if axes > MAX_AXES:
            raise ValueError(f"a tensor of {axes} axes")
        shapes.append(struct.unpack_from(f"<{axes}i", content, place))
        place += 4 * axes
    (offset,) = struct.unpack_from("<Q", content, place)
    place += 8 + offset
    entries = {}
    for name, shape, header in zip(names, shapes, headers, strict=True):
        _, kind, _, size = header
        needed = {
            FLOAT32: 4 * math.prod(shape),
            INT8: math.prod(shape) + 4,
            BYTES: math.prod(shape),
        }
        text = name.decode()
        if text in entries:
            raise ValueError(f"two tensors are called {text}")
        if kind not in needed:
            raise ValueError(f"{text} is of type {kind:#x}")
        if min(shape, default=1) < 0 or needed[kind] > size:
            raise ValueError(f"{text} of shape {shape} has {size} bytes")
        if place + size > len(content):
            raise ValueError(f"{text} goes beyond the file's end")
        entries[text] = (kind, shape, place, size)
        place += size
    return entries


def read_json(path: pathlib.Path) -> dict:
    """Reads a JSON object.

    Raises:
        UserError: If the file does not exist or is not a JSON object.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"--model-dir must hold {path.name}. Received: {path.parent}"
        ) from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UserError(f"{path} must hold a JSON object")
    return found


def damaged_file_error(path: pathlib.Path, wanted: str, received: str) -> UserError:
    return UserError(f"{path} must be {wanted}, and whole. Received: {received}")
