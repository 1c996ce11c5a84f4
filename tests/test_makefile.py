"""Tests of the Makefile."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

MAKEFILE = pathlib.Path(__file__).parent.parent / "Makefile"


def test_says_which_python_it_wants_where_there_is_none(tmp_path):
    shutil.copy(MAKEFILE, tmp_path)
    done = subprocess.run(
        ["make", "PYTHON=", ".venv/bin/python"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    line = done.stderr.splitlines()[0]
    assert "needs Python 3.11, 3.12 or 3.13" in line
    assert not (tmp_path / ".venv").exists()


@pytest.mark.slow
def test_the_demo_prints_nothing_that_is_not_ours(tmp_path):
    environment = {
        name: value
        for name, value in os.environ.items()
        # The tests' own, and those of the `make` that may run them.
        if name not in ("TF_CPP_MIN_LOG_LEVEL", "MAKEFLAGS", "MAKELEVEL")
    }
    done = subprocess.run(
        [
            *("make", "demo", "--old-file=.venv/train.stamp", "UPDATES=20"),
            "AT_LEAST=unseen=0",  # Of so few.
            f"PY={sys.executable}",
            f"RUN_DIR={tmp_path / 'run'}",
            f"EXPORT_DIR={tmp_path / 'export'}",
        ],
        cwd=MAKEFILE.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    not_ours = re.compile(r"warning|notice|deprecat|\b[IWEF]\d{4} ", re.I)
    assert not list(filter(not_ours.search, done.stdout.splitlines()))
    assert "== unseen: 500 sentences through the SavedModel" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("ok ")
