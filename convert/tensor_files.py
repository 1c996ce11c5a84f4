"""Reads named tensors from safetensors and NPZ files.

Sizes in a file are not trusted: a tensor that does not fit the file's size is
refused before memory is allocated for it.
"""

import dataclasses
import math
import pathlib
import warnings
import zipfile
from collections.abc import Callable

import numpy as np

from command_line.errors import UserError, refuse_damage

MAX_PACKED = 8  # Compression never shrinks weights to an eighth.


@dataclasses.dataclass
class Tensors:
    """The tensors of a file of any format, which are read one by one.

    Attributes:
        path: Path of the file.
        kind: The format, for errors.
        shapes: Dict from name to shape.
    """

    path: pathlib.Path
    kind: str
    shapes: dict[str, tuple[int, ...]]
    _read: Callable[[str], np.ndarray]

    def __post_init__(self):
        self._left = set(self.shapes)

    def __contains__(self, name: str) -> bool:
        return name in self.shapes

    @property
    def num_elements(self) -> int:
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

    def read(self, name: str) -> np.ndarray:
        """Returns a tensor in the type of the file."""
        self.ignore(name)
        with refuse_damage(self.path, f", and {self.kind} of NumPy's types"):
            return self._read(name)

    def take(self, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Returns a tensor in float32, if it is finite; `None` is its own shape."""
        self.check(name, self.shapes.get(name) if shape is None else shape)
        # Numbers beyond float32 become infinite.
        with np.errstate(all="ignore"):
            array = np.asarray(self.read(name), np.float32)
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
    import safetensors

    # Opened for each tensor: while a file is open, pages that were read count
    # as memory of this process.
    def open_file():
        return safetensors.safe_open(path, framework="numpy")

    def read(name: str) -> np.ndarray:
        with open_file() as file:
            return file.get_tensor(name)

    with refuse_damage(path, ", and safetensors"), open_file() as file:
        shapes = {
            name: tuple(file.get_slice(name).get_shape())
            for name in file.keys()  # noqa: SIM118  Not a dict.
        }
    return Tensors(path, "safetensors", shapes, read)


def open_npz(path: pathlib.Path) -> Tensors:
    kind = "a NumPy archive"
    with refuse_damage(path, f", and {kind}"), zipfile.ZipFile(path) as archive:
        check_unpacked_size(archive, path)
        shapes = {
            info.filename.removesuffix(".npy"): read_shape(archive, info)
            for info in archive.infolist()
        }
        if len(shapes) < len(archive.infolist()):
            raise ValueError("two tensors of one name")

    def read(name: str) -> np.ndarray:
        with np.load(path, allow_pickle=False) as archive:
            return archive[name]

    return Tensors(path, kind, shapes, read)


def check_unpacked_size(archive: zipfile.ZipFile, path: pathlib.Path) -> None:
    """Raises `ValueError` if an archive would unpack to much more than weights."""
    size = sum(info.file_size for info in archive.infolist())
    if size > MAX_PACKED * path.stat().st_size:
        raise ValueError("it would unpack to more than eight times itself")


def read_shape(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[int, ...]:
    """Returns the shape of an array, whose header must fit its size."""
    with archive.open(info) as file, warnings.catch_warnings():
        # NumPy warns about a header that Python 2 wrote.
        warnings.simplefilter("ignore")
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read(file)
        size = info.file_size - file.tell()
    if dtype.kind not in "fiu" or min(shape, default=1) < 0:
        raise ValueError(f"{info.filename} is of {dtype} in shape {shape}")
    if math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{info.filename} is not as long as it says")
    return shape
