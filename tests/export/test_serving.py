"""A plain C program, without Python, serves the SavedModel."""

import pathlib
import shutil
import subprocess
import sys

import pytest
import tensorflow as tf
import tensorflow_text

from export.bundle.graph_inspection import read_meta_graph, served_signatures
from tests.helpers.example_sentences import SENTENCES

COMPILER = shutil.which("cc") or shutil.which("gcc")
SOURCE = pathlib.Path(__file__).parents[1] / "helpers/programs/serving_smoke.c"


@pytest.mark.skipif(
    COMPILER is None or sys.platform != "linux", reason="needs Linux and a C compiler"
)
def test_a_program_without_python_translates(export_dir, translate, tmp_path):
    """Built against the libraries in TensorFlow's wheel."""
    text = [*SENTENCES, "", "ñandú 🐈"]
    program, version = tmp_path / "serving_smoke", export_dir / "1"
    library = pathlib.Path(tf.__file__).parent
    ops = pathlib.Path(tensorflow_text.__file__).parent / "python" / "ops"
    signature = served_signatures(read_meta_graph(version))["serving_default"]
    compile_it = [
        *(COMPILER, SOURCE, "-o", program, "-I", library / "include", "-L", library),
        *("-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"),
        f"-Wl,-rpath,{library}",
    ]
    translate_with_it = [
        *(program, version, ops / "_sentencepiece_tokenizer.so"),
        *(signature.inputs["text"].name, signature.outputs["translation"].name),
    ]
    lines = "".join(f"{line}\n" for line in text).encode()

    subprocess.run(compile_it, check=True)
    done = subprocess.run(translate_with_it, input=lines, capture_output=True)

    assert done.returncode == 0, done.stderr.decode()
    expected = translate(text)["translation"]
    assert done.stdout.split(b"\n")[:-1] == expected.tolist()
    assert len(set(expected)) > 3
