"""A plain C program, without Python, serves the SavedModel."""

import pathlib
import shutil
import subprocess
import sys

import pytest
import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2

from export.bundle.saved_model import load_translate
from tests.helpers.sentences import SENTENCES

COMPILER = shutil.which("cc") or shutil.which("gcc")
SOURCE = pathlib.Path(__file__).parents[1] / "helpers/serving_smoke.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, built against the libraries in TensorFlow's wheel."""
    if COMPILER is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler")
    path = tmp_path_factory.mktemp("program") / "serving_smoke"
    library = pathlib.Path(tf.__file__).parent
    command = [
        *(COMPILER, str(SOURCE), "-o", str(path)),
        *("-I", str(library / "include"), "-L", str(library)),
        *("-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"),
        f"-Wl,-rpath,{library}",
    ]
    subprocess.run(command, check=True)
    return path


def tensors_of(folder):
    """Returns the names of input and output in the SignatureDef."""
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((folder / "saved_model.pb").read_bytes())
    signature = model.meta_graphs[0].signature_def["serving_default"]
    return (
        signature.inputs["text"].name,
        signature.outputs["translation"].name,
    )


def test_a_program_without_python_translates(program, export_dir):
    folder = export_dir / "1"
    text = [*SENTENCES, "", "ñandú 🐈"]
    ops = pathlib.Path(tensorflow_text.__file__).parent / "python" / "ops"
    command = [program, folder, ops / "_sentencepiece_tokenizer.so"]

    done = subprocess.run(
        [*map(str, command), *tensors_of(folder)],
        input="".join(f"{line}\n" for line in text).encode(),
        capture_output=True,
    )

    assert done.returncode == 0, done.stderr.decode()
    expected = load_translate(export_dir)(text)["translation"].numpy()
    assert done.stdout.split(b"\n") == [*expected, b""]
    assert len(set(expected)) > 3
