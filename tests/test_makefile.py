"""Tests of the Makefile."""

import pathlib
import shutil
import subprocess

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
