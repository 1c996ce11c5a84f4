"""Damaged files: an error in one line, or tensors of the file's own size."""

import io
import pathlib
import struct
import tempfile
import tracemalloc
import zipfile

import hypothesis
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import strategies

from command_line.errors import UserError
from convert.binary_files import open_ctranslate2, open_marian
from convert.marian_config import read_configuration
from convert.tensor_files import open_safetensors
from tests.helpers.other_systems.ctranslate2_models import write_model_bin
from tests.helpers.other_systems.marian_files import write_model

TENSORS = {
    "Wemb": np.arange(12, dtype="float32").reshape(3, 4),
    "decoder_ff_logit_out_b": np.ones((1, 3), "float32"),
}
LARGE = [2**8 - 1, 2**31 - 1, 2**31, 2**40, 2**63, 2**64 - 1]
# Memory of the libraries themselves, whatever the file.
ROOM = 4_000_000


def make_file(suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"model{suffix}"
        if suffix == ".safetensors":
            safetensors.numpy.save_file(TENSORS, path)
        elif suffix == ".ct2":
            write_model_bin(path)
        else:
            write_model(path, TENSORS)
        return path.read_bytes()


SUFFIXES = (".bin", ".npz", ".safetensors", ".ct2")
FILES = {suffix: make_file(suffix) for suffix in SUFFIXES}


@strategies.composite
def damaged(draw, content):
    """Draws a file with some bytes changed, cut, put in or swapped."""
    data = bytearray(content)
    place = strategies.integers(0, len(data) - 8)
    if draw(strategies.booleans()):  # Where the headers are.
        place = strategies.integers(0, 200)
    for _ in range(draw(strategies.integers(1, 3))):
        how = draw(strategies.sampled_from(["flip", "cut", "insert", "number"]))
        at = min(draw(place), max(0, len(data) - 8))
        if how == "flip":
            data[at : at + 1] = draw(strategies.binary(min_size=1, max_size=1))
        elif how == "cut":
            del data[at : at + draw(strategies.integers(1, len(content)))]
        elif how == "insert":
            data[at:at] = draw(strategies.binary(min_size=1, max_size=9))
        else:
            number = draw(strategies.sampled_from(LARGE))
            at -= at % 8
            data[at : at + 8] = number.to_bytes(8, "little")
    return bytes(data)


def read_all(path):
    """Reads all that a command would, and returns it in float32."""
    if path.suffix == ".safetensors":
        file = open_safetensors(path)
    elif path.suffix == ".ct2":
        file, _ = open_ctranslate2(path)
    else:
        file, text = open_marian(path)
        read_configuration(text, path)
    for name, shape in list(file.shapes.items()):
        if name != "special:model.yml":
            yield file.take(name, shape)


@pytest.mark.parametrize("suffix", FILES)
def test_an_error_in_one_line_or_a_file_that_can_be_read(suffix, tmp_path):
    path = tmp_path / f"model{suffix}"

    @hypothesis.settings(
        max_examples=334, deadline=None, database=None, derandomize=True
    )
    @hypothesis.given(damaged(FILES[suffix]))
    def check(content):
        path.write_bytes(content)
        tracemalloc.start()
        try:
            for array in read_all(path):
                assert array.dtype == np.float32
        except UserError as error:
            message = str(error)
        else:
            message = "none"
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert len(message.splitlines()) == 1
        assert peak < ROOM

    check()


def test_an_array_that_claims_more_than_the_file_takes_no_memory(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"shape": (2**20, 2**20), "fortran_order": False, "descr": "<f4"}
    )
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Wemb.npy", header.getvalue())

    with pytest.raises(UserError, match="not as long as it says"):
        open_marian(path)


def write_members(path, **members):
    """Writes an archive of compressed arrays; names may come twice."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name.rstrip('_')}.npy", content.getvalue())


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a": [1.0], "a_": [2.0]}, "two tensors of one name"),
        ({"a": np.zeros(9_999)}, "unpack to more than eight times itself"),
        ({"a": ["text"]}, "a.npy is of <U4 in shape \\(1,\\)"),
        ({"a": [1.0]}, "a model of Marian. Received: no special:model.yml"),
    ],
)
def test_an_archive_that_holds_no_model(members, message, tmp_path):
    write_members(tmp_path / "model.npz", **members)

    with pytest.raises(UserError, match=message):
        open_marian(tmp_path / "model.npz")


def make_bin(count=1, kind=0x404, axes=(2, 3), size=256, names=(b"a\0",)):
    """Returns a file of Marian; arguments make it invalid."""
    tensors = len(names)
    header = struct.pack("<4Q", 2, kind, len(axes), size)
    shape = struct.pack(f"<{len(axes)}i", *axes)
    return b"".join(
        (
            struct.pack("<2Q", 1, count),
            *(header * tensors, *names, shape * tensors),
            struct.pack("<Q", 0),
            bytes(256 * tensors),
        )
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (make_bin(count=2**40), "1099511627776 tensors do not fit"),
        (make_bin(axes=[1] * 9), "a tensor of 9 axes"),
        (make_bin(2, names=[b"a\0"] * 2), "two tensors are called a"),
        (make_bin(kind=0x402), "a is of type 0x402"),
        (make_bin(axes=(9, 9)), r"a of shape \(9, 9\) has 256 bytes"),
        (make_bin(size=512), "a goes beyond the file's end"),
        (b"\2" + make_bin()[1:], "version 2; version 1 is known"),
        (make_bin(), "a model of Marian. Received: no special:model.yml"),
    ],
)
def test_a_file_of_marian_that_contradicts_itself(content, message, tmp_path):
    (tmp_path / "model.bin").write_bytes(content)

    with pytest.raises(UserError, match=message):
        open_marian(tmp_path / "model.bin")
