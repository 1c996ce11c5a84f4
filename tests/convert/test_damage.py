"""Damaged files: an error in one line, or tensors of the file's own size."""

import io
import pathlib
import tempfile
import tracemalloc
import zipfile

import hypothesis
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import strategies

from command_line.errors import UserError
from convert import tensor_files
from convert.ctranslate2_file import open_ctranslate2
from convert.marian_config import read_configuration
from convert.tensor_files import open_marian
from convert.tensor_files import open_safetensors
from tests.helpers.ctranslate2_models import write_model_bin
from tests.helpers.marian_files import write_model

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
        file = open_ctranslate2(path).tensors
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
        header,
        {"shape": (2**20, 2**20), "fortran_order": False, "descr": "<f4"},
    )
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Wemb.npy", header.getvalue())

    with pytest.raises(UserError, match="not as long as it says"):
        open_marian(path)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_tensor_is_read_in_parts_as_it_stands(dtype, monkeypatch, tmp_path):
    monkeypatch.setattr(tensor_files, "CHUNK_ELEMENTS", 15)
    whole = np.random.default_rng(3).normal(size=(17, 4)).astype(dtype)
    arrays = {"rows": whole, "row": whole[:1], "vector": whole.ravel()}
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(arrays, path)

    file = open_safetensors(path)

    for name, array in arrays.items():
        np.testing.assert_array_equal(file.take(name, array.shape), array)
