"""Tests of `python -m train`."""

import csv
import json
import shutil

import keras
import pytest

import train.__main__ as train_command
from keras_transformer import SubwordTokenizer
from train.corpus import demo_pairs

SIZES = {
    "preset": "tiny",
    "num-layers": 1,
    "hidden-dim": 8,
    "intermediate-dim": 8,
    "num-heads": 1,
    "key-dim": 8,
    "value-dim": 8,
    "vocabulary-size": 340,
    "batch-tokens": 64,
    "steps": 3,
    "round-steps": 2,
    "average": 2,
    "max-length": 90,
}
TINY = [f"--{name}={value}" for name, value in SIZES.items()]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Options that name four small files, one with a line to drop."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = demo_pairs("validation")
    options = []
    for name, lines in (
        ("train-source", ["", *pairs.sources[:60]]),
        ("train-target", ["x", *pairs.targets[:60]]),
        ("validation-source", pairs.sources[60:70]),
        ("validation-target", pairs.targets[60:70]),
    ):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        options += [f"--{name}", str(folder / name)]
    return options


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    """The folder of a run that has ended."""
    run_dir = tmp_path_factory.mktemp("runs") / "first"
    train_command.main(["--run-dir", str(run_dir), *corpus, *TINY])
    return run_dir


def refusal(capsys, arguments):
    """Returns the one line with which the command ends in exit code 2."""
    with pytest.raises(SystemExit) as exit_:
        train_command.main([str(argument) for argument in arguments])
    assert exit_.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_a_run_folder_holds_all_that_the_run_was(finished):
    names = {path.name for path in finished.iterdir()}
    assert names == {
        "arguments.json",
        "checkpoints",
        "encoded",
        "history.csv",
        "logs",
        "model.keras",
        "report.json",
        "report.png",
        "tokenizer.model",
    }
    description = json.loads((finished / "arguments.json").read_text())
    assert description["preset"]["hidden_dim"] == 8
    assert description["preset"]["dropout"] == 0.3
    assert description["packages"]["keras"] == keras.__version__
    with (finished / "history.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["2", "3"]
    model = keras.saving.load_model(finished / "model.keras")
    proto = (finished / "tokenizer.model").read_bytes()
    assert model.vocabulary_size == SubwordTokenizer(proto).vocabulary_size
    assert model.sequence_length == 90


def test_the_same_command_goes_on_where_the_run_was(finished, corpus, capsys):
    before = (finished / "history.csv").read_bytes()

    train_command.main(["--run-dir", str(finished), *corpus, *TINY])

    output = capsys.readouterr().out
    assert "continuing after update 3" in output
    assert "61 pairs read, 60 kept, 1 empty and 0 too long" in output
    assert f"python -m export --run-dir {finished}" in output
    assert (finished / "history.csv").read_bytes() == before


def test_a_run_that_has_ended_goes_on_with_more_steps(
    finished, corpus, tmp_path, capsys
):
    run_dir = tmp_path / "copy"
    shutil.copytree(finished, run_dir)
    options = ["--run-dir", str(run_dir), *corpus, *TINY]

    train_command.main([*options, "--steps", "5"])

    with (run_dir / "history.csv").open() as file:
        steps = [row["step"] for row in csv.DictReader(file)]
    assert steps == ["2", "3", "5"]
    line = refusal(capsys, [*options, "--steps", "4"])
    assert "steps: 5 there, 4 here" in line


def test_other_arguments_are_refused_by_name(finished, corpus, capsys):
    changed = ["--seed", "7", "--dropout", "0.2"]
    line = refusal(capsys, ["--run-dir", finished, *corpus, *TINY, *changed])

    assert "seed: 0 there, 7 here" in line
    assert "dropout: None there, 0.2 here" in line
    assert "preset" not in line


def test_changed_text_is_refused(finished, corpus, tmp_path, capsys):
    copies = list(corpus)
    copies[3] = tmp_path / "target"
    copies[3].write_text("y\n" * 61)

    line = refusal(capsys, ["--run-dir", finished, *copies, *TINY])

    assert "train_target:" in line
    assert "train: " in line


def test_the_demo_writes_its_test_sets(tmp_path, capsys):
    # The vocabulary is refused after the demo's files are written.
    arguments = ["--run-dir", tmp_path, "--dataset", "demo"]
    line = refusal(capsys, [*arguments, *TINY, "--vocabulary-size", "90000"])

    assert "larger than the text supports" in line
    for split in ("test", "unseen"):
        lines = (tmp_path / "demo" / f"{split}.es").read_text().splitlines()
        assert lines == demo_pairs(split).targets


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--train-source", "nowhere"], "no such file: nowhere"),
        (
            ["--preset", "bse"],
            "Received: --preset 'bse'. The nearest is 'base'",
        ),
        (["--dataset", "demo"], "--dataset or files, not both"),
        (["--devices", "GPU:9"], "--devices must be among"),
        (["--vocabulary-size", "9000"], "larger than the text supports"),
        (["--max-length", "2"], "no pair of the corpus has text of 1 to 2"),
        (["--dropout", "1.5"], "`dropout` must be a number in [0, 1)"),
        (["--num-heads", "0"], "`num_heads` must be a positive int"),
        (["--norm", "middle"], "`norm` must be one of 'post', 'pre'"),
        (["--steps", "0"], "argument --steps: invalid positive int value: '0'"),
        (["--batch-tokens", "-3"], "invalid positive int value: '-3'"),
    ],
)
def test_mistakes_end_in_one_line(corpus, tmp_path, capsys, changes, message):
    line = refusal(capsys, ["--run-dir", tmp_path, *corpus, *TINY, *changes])

    assert message in line


def test_a_mistake_claims_no_folder(corpus, tmp_path, capsys):
    options = ["--run-dir", tmp_path, *corpus, *TINY]
    refusal(capsys, [*options, "--vocabulary-size", "9000"])
    refusal(capsys, [*options, "--dropout", "7"])

    line = refusal(capsys, [*options, "--num-heads", "0"])

    assert "`num_heads` must be" in line
    assert not (tmp_path / "arguments.json").exists()


def test_a_corpus_must_be_named_whole(corpus, tmp_path, capsys):
    line = refusal(capsys, ["--run-dir", tmp_path, *corpus[:4]])

    assert "Received: --train-source, --train-target" in line


def test_a_full_disk_is_one_line(corpus, tmp_path, capsys):
    (tmp_path / "arguments.json.part").symlink_to("/dev/full")

    line = refusal(capsys, ["--run-dir", tmp_path, *corpus, *TINY])

    assert "No space left on device" in line
