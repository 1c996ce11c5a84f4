"""Commands that are called otherwise now say so."""

import runpy
import sys

import pytest


@pytest.mark.parametrize(
    ("old", "options", "new"),
    [
        (
            "train.checkpoints",
            ["average", "--run-dir", "my run", "--best", "5"],
            "train.average --run-dir 'my run' --best 5",
        ),
        ("train.reproduce", ["table2", "--gpus", "1"], "paper.table2 --gpus 1"),
        ("train.reproduce", ["table3", "--report"], "paper.table3 --report"),
    ],
)
def test_an_old_command_says_the_new_one(
    monkeypatch, capsys, old, options, new
):
    monkeypatch.setattr(sys, "argv", [old, *options])

    with pytest.raises(SystemExit) as exit_:
        runpy.run_module(old, run_name="__main__")

    assert exit_.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"error: this command has another name now: python -m {new}"
    ]
