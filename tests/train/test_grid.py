"""Tests of `python -m train.grid`."""

import json
import os
import signal
import subprocess
import threading

import pytest

from command_line.errors import UserError
from tests.helpers.error_capture import refusal
from tests.helpers.small_runs import TINY_OPTIONS
from train import grid
from train.options import parse_options

POPEN = subprocess.Popen


class Ended:
    """A process that has ended."""

    def __init__(self, code):
        self._code = code

    def wait(self):
        return self._code


@pytest.fixture
def command(corpus, tmp_path, monkeypatch):
    """The command of a grid whose trainings only write scores."""
    (tmp_path / "grid.json").write_text(
        json.dumps({"plain": "", "No dropout!": "--dropout 0"})
    )
    trained = []

    def run(command):
        assert command[1:3] == ["-m", "train"]
        options = parse_options(command[3:])
        trained.append(command[3:])
        if options.hyperparameters.num_heads == 0:
            return Ended(2)
        # The gain without dropout is 2 with seed 3, and 4 with seed 4.
        seed, run_dir = options.training.seed, options.run.run_dir
        score = 10 * seed
        if options.hyperparameters.dropout == 0:
            score += 2 * seed - 4
        scores = {"bleu": score, "chrf": 50, "perplexity": 4.5}
        (run_dir / "model.json").write_text(json.dumps({"validation": scores}))
        (run_dir / "history.csv").write_text("step\n100\n1200\n")
        (run_dir / "arguments.json").write_text("{}")
        return Ended(0)

    monkeypatch.setattr(grid.subprocess, "Popen", run)
    options = [
        *(f"--run-dir={tmp_path / 'grid'}", f"--grid={tmp_path / 'grid.json'}"),
        *(*corpus, *TINY_OPTIONS),
    ]
    return options, trained


def test_variants_and_seeds_are_trained_once_and_compared(command, tmp_path, capsys):
    options, trained = command
    grid.main([*options, "--seeds", "3"])
    assert [c[-1] for c in trained] == ["3", "3"]
    grid.main([*options, "--seeds", "3", "4"])

    folders = ["plain-3", "no-dropout-3", "plain-4", "no-dropout-4"]
    found = [str(parse_options(c).run.run_dir) for c in trained]
    assert found == [str(tmp_path / "grid" / name) for name in folders]
    printed = capsys.readouterr().out
    assert "run 1 of 4, plain, seed 3: there" in printed
    report = (tmp_path / "grid/report.md").read_text()
    assert printed.endswith(report)
    # 12.706 times 5 and 6, half of the differences of 10 and 12; and 1.
    assert report.splitlines()[2:] == [
        "| plain | 2 | 35.00 ± 63.53 |  | 50.00 | 4.50 | 1,200 |",
        "| No dropout! | 2 | 38.00 ± 76.24 | +3.00 ± 12.71 | 50.00 | 4.50 | 1,200 |",
    ]
    # Other options are another grid.
    line = refusal(capsys, grid.main, [*options, "--seeds=3", "--clip-norm=1"])
    assert "plain-3 holds a run of other options" in line
    # So is a run that no grid began.
    (tmp_path / "grid/plain-3/grid_command.json").unlink()
    line = refusal(capsys, grid.main, [*options, "--seeds=3"])
    assert "plain-3 holds a run of other options" in line


@pytest.mark.slow
def test_a_grid_trains(corpus, tmp_path):
    path = tmp_path / "grid.json"
    path.write_text('{"plain": ""}')
    options = [f"--run-dir={tmp_path / 'grid'}", f"--grid={path}", *corpus]

    grid.main([*options, *TINY_OPTIONS, "--validate-bleu=3", "--seeds=7"])

    arguments = json.loads((tmp_path / "grid/plain-7/arguments.json").read_text())[
        "arguments"
    ]
    assert arguments["seed"] == 7
    report = (tmp_path / "grid/report.md").read_text()
    assert report.splitlines()[2].startswith("| plain | 1 | 0.")
    assert report.splitlines()[-1].startswith("BLEU of the validation set: nr")


def test_intervals_are_students():
    # Of 1, 2, 3: 4.303 standard errors, each sqrt(1 / 3).
    assert grid.describe([1.0, 2.0, 3.0]) == "2.00 ± 2.48"
    assert grid.describe([1.0, 3.0], "+.1f") == "+2.0 ± 12.71"
    assert grid.describe([2.0]) == "2.00"
    assert grid.describe([]) == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "must be an object of names and options"),
        ('{"a": 3}', "Received: {'a': 3}"),
        ("{", "must be JSON"),
        ('{"a b": "", "a-b": ""}', "must differ in letters and digits"),
        (
            """{"a": "--norm 'pre"}""",
            "grid.json must be as in a shell: No closing quotation. "
            "Received: --norm 'pre",
        ),
        ('{"a": "--seed 3"}', "sets --seed and --run-dir itself"),
    ],
)
def test_other_grids_are_refused(tmp_path, content, message):
    path = tmp_path / "grid.json"
    path.write_text(content)
    options = grid.GridOptions(run_dir=tmp_path, grid=path, seeds=[1])
    with pytest.raises(UserError) as error:
        grid.plan_runs(options, [])
    assert message in str(error.value)


def test_a_signal_ends_the_grid_and_its_training(command, monkeypatch):
    started = []

    def start(*_):
        started.append(POPEN(["sleep", "60"]))
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGTERM]).start()
        return started[-1]

    monkeypatch.setattr(grid.subprocess, "Popen", start)
    with pytest.raises(SystemExit, match="143"):
        grid.main([*command[0], "--seeds=1"])

    (process,) = started
    assert process.returncode == -signal.SIGTERM


def test_what_fails_is_named_at_the_end_and_can_be_corrected(command, capsys, tmp_path):
    options, trained = command
    path = tmp_path / "grid.json"
    path.write_text('{"a": "", "b": "--num-heads=0"}')
    line = refusal(capsys, grid.main, [*options, "--seeds=1"])
    assert "these runs failed" in line
    assert line.endswith("not in the table: b (1)")
    assert len(trained) == 2

    path.write_text('{"a": "", "b": "--num-heads=1"}')
    grid.main([*options, "--seeds=1"])
    assert len(trained) == 3
    report = tmp_path / "grid/report.md"
    assert len(report.read_text().splitlines()) == 4
    # The table is that of the variants that the file has now.
    path.write_text('{"b": "--num-heads=1"}')
    grid.main([*options, "--seeds=1"])
    assert len(report.read_text().splitlines()) == 3
