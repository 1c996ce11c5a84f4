"""Runs Python code in a subprocess."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
on_other_backends = pytest.mark.parametrize(
    "backend",
    [
        pytest.param("jax", marks=pytest.mark.slow),
        pytest.param("torch", marks=pytest.mark.peers("torch")),
    ],
)


def run_python(*arguments, backend="tensorflow", cwd=ROOT, **environment):
    """Runs it once, on a backend of Keras; returns what it prints."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout
