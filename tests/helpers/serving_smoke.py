"""Compiles and runs `serving_smoke.c`, a C program that serves a SavedModel."""

import pathlib
import shutil
import subprocess
import sys

import pytest
import tensorflow as tf
import tensorflow_text

from export.bundle.graph_inspection import read_meta_graph, served_signatures

COMPILER = shutil.which("cc") or shutil.which("gcc")
SOURCE = pathlib.Path(__file__).with_suffix(".c")


def compile_program(folder):
    """Builds the program against the libraries in TensorFlow's wheel.

    Returns:
        Function from the folder of a version and texts to the lines that the
        program writes, bytes.
    """
    if COMPILER is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler")
    path = folder / "serving_smoke"
    library = pathlib.Path(tf.__file__).parent
    command = [
        *(COMPILER, str(SOURCE), "-o", str(path)),
        *("-I", str(library / "include"), "-L", str(library)),
        *("-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"),
        f"-Wl,-rpath,{library}",
    ]
    subprocess.run(command, check=True)

    def translate(version, text):
        ops = pathlib.Path(tensorflow_text.__file__).parent / "python" / "ops"
        signatures = served_signatures(read_meta_graph(version))
        signature = signatures["serving_default"]
        command = [
            *(path, version, ops / "_sentencepiece_tokenizer.so"),
            signature.inputs["text"].name,
            signature.outputs["translation"].name,
        ]
        done = subprocess.run(
            command,
            input="".join(f"{line}\n" for line in text).encode(),
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.split(b"\n")[:-1]

    return translate
