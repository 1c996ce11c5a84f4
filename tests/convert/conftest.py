"""How tests of `convert` see a refusal."""

import pytest

from convert.__main__ import main
from tests.helpers.error_capture import refusal


@pytest.fixture(scope="module")
def one_thread():
    """Lets PyTorch and TensorFlow not wait for each other's threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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
