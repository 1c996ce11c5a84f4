"""How tests of `convert` see a refusal."""

import pytest

from convert.__main__ import main
from tests.helpers.error_capture import refusal


@pytest.fixture
def refused(capsys, tmp_path):
    """Function to the line that refuses a command, which then wrote nothing."""

    def run(command, *arguments):
        target = tmp_path / "out" / "run"
        target.parent.mkdir(exist_ok=True)
        line = refusal(capsys, main, [command, *arguments, "--run-dir", target])
        assert line.startswith("error: ")
        assert not list(target.parent.iterdir())
        return line

    return run
