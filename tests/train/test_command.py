"""Tests of `python -m train`."""

import csv
import gzip
import hashlib
import json
import pathlib
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import train.__main__ as train_command
from command_line.errors import UserError
from keras_transformer import SubwordTokenizer
from tests.helpers.small_runs import TINY
from tests.helpers.small_runs import refused as refusal
from train.data.corpus import demo_pairs
from train.options import NOT_COMPARED
from train.options import parse_options
from train.resolve import load_corpus
from train.resolve import resolve
from train.run import run_folder
from train.run.best import best_steps
from train.run.fine_tuning import load_finished
from train.run.run_folder import read_preset


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    """The folder of a run that has ended."""
    run_dir = tmp_path_factory.mktemp("runs") / "first"
    train_command.main(["--run-dir", str(run_dir), *corpus, *TINY])
    return run_dir


def test_a_run_folder_holds_all_that_the_run_was(finished):
    names = {path.name for path in finished.iterdir()}
    assert names == {
        "arguments.json",
        "checkpoints",
        "encoded",
        "history.csv",
        "lock",
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
    assert (finished / "logs" / "attention").is_dir()
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
    assert steps == ["2", "3", "4", "5"]
    line = refusal(capsys, [*options, "--steps", "4"])
    assert "steps: 5 there, 4 here" in line


def describe(options):
    """What `arguments.json` would say of a run with these options."""
    given = parse_options([str(option) for option in options])
    resolved, preset = resolve(given, None)
    pairs = load_corpus(resolved.corpus, resolved.cache)
    return run_folder.describe(resolved.arguments(), preset, *pairs)


def find(run_dir, options):
    """What `run_folder.find` says of a run with these options."""
    return run_folder.find(run_dir, describe(options), NOT_COMPARED)


def test_a_mistake_in_the_number_of_steps_can_be_mended(
    finished, corpus, tmp_path
):
    options = ["--run-dir", finished, *corpus, *TINY]
    there = json.loads((finished / "arguments.json").read_text())
    there["preset"]["steps"] = there["arguments"]["steps"] = 40_000
    run_dir = tmp_path / "copy"
    (run_dir / "checkpoints").mkdir(parents=True)
    (run_dir / "checkpoints" / "ckpt-300.index").touch()
    (run_dir / "arguments.json").write_text(json.dumps(there))

    for steps in (300, 4_000, 90_000):
        find(run_dir, [*options, "--steps", steps])
    with pytest.raises(UserError, match="steps: 40000 there, 299 here"):
        find(run_dir, [*options, "--steps", 299])
    # Left out, it does not ask for the 8,000 of the preset.
    there["preset"]["steps"] = 500
    (run_dir / "arguments.json").write_text(json.dumps(there))
    left_out = [o for o in options if not str(o).startswith("--steps")]
    with pytest.raises(UserError, match="steps: 500 there, 8000 here"):
        find(run_dir, left_out)


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        (["--seed", "7"], ["seed: 0 there, 7 here"]),
        (
            ["--dropout", "0", "--label-smoothing", "0"],
            ["dropout: 0.3 there, 0.0 here", "label_smoothing: 0.1 there, 0.0"],
        ),
        (["--round-steps", "1"], ["round_steps: 2 there, 1 here"]),
        (["--clip-norm", "1"], ["clip_norm: None there, 1.0 here"]),
        (["--norm", "pre"], ["norm: post there, pre here"]),
    ],
)
def test_other_arguments_are_refused_by_name(
    finished, corpus, capsys, changes, messages
):
    line = refusal(capsys, ["--run-dir", finished, *corpus, *TINY, *changes])

    for message in messages:
        assert message in line
    assert line.count(" there, ") == len(messages)


def test_the_same_text_may_lie_elsewhere_and_come_in_other_portions(
    finished, corpus, tmp_path
):
    moved = list(corpus)
    for i in range(1, len(moved), 2):
        moved[i] = tmp_path / f"{i}.gz"
        moved[i].write_bytes(
            gzip.compress(pathlib.Path(corpus[i]).read_bytes())
        )
    options = ["--run-dir", finished, *moved, *TINY]

    found = find(finished, [*options, "--max-tokens-per-replica", "512"])

    assert found["round_steps"] == 2


def test_changed_text_is_refused(finished, corpus, tmp_path, capsys):
    copies = list(corpus)
    copies[3] = tmp_path / "target"
    copies[3].write_text("y\n" * 61)

    line = refusal(capsys, ["--run-dir", finished, *copies, *TINY])

    assert "train: " in line
    assert "validation: " not in line


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


def test_quality_is_watched_and_ends_a_run_in_vain(corpus, tmp_path, capsys):
    watch = "--validate-bleu 2 --validation-beam-size 2 --keep-best 1"
    # With a rate of nearly zero no round is better than the first.
    options = "--patience 1 --learning-rate-scale 1e-30 --steps 100"
    command = [*corpus, *TINY, *watch.split(), *options.split()]
    command += ["--run-dir", str(tmp_path)]

    train_command.main(command)

    history = (tmp_path / "history.csv").read_bytes()
    rows = list(csv.DictReader(history.decode().splitlines()))
    assert [row["step"] for row in rows] == ["2", "4"]
    assert rows[0]["bleu"] == ""
    assert 0 <= float(rows[1]["bleu"]) <= 100
    assert rows[0]["val_loss"] == rows[1]["val_loss"]
    assert best_steps(tmp_path) == [2]
    assert (tmp_path / "best" / "ckpt-2.index").exists()
    assert list((tmp_path / "logs" / "translations").iterdir())
    description = json.loads((tmp_path / "arguments.json").read_text())
    assert description["arguments"]["best_by"] == "loss"
    assert "no better val_loss in 1 rounds" in capsys.readouterr().out

    train_command.main(command)  # There is nothing more to do.
    assert (tmp_path / "history.csv").read_bytes() == history


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--best-by", "loss"], "--best-by needs --keep-best N or --patience"),
        (
            ["--best-by", "bleu", "--patience", "2"],
            "--best-by bleu needs --validate-bleu N. Received: --best-by bleu",
        ),
        (
            ["--validation-beam-size", "2"],
            "--validation-beam-size needs --validate-bleu N",
        ),
        (["--init-from", "nowhere"], "--init-from must be the folder of a run"),
        (["--from-arguments", "nowhere"], "No such file or directory: nowhere"),
        (
            ["--from-arguments", __file__],
            "must be the arguments.json of a run. Received: " + __file__,
        ),
    ],
)
def test_mistakes_on_quality_and_other_runs_end_in_one_line(
    corpus, tmp_path, capsys, changes, message
):
    line = refusal(capsys, ["--run-dir", tmp_path, *corpus, *TINY, *changes])

    assert message in line


def test_arguments_of_a_run_repeat_it(finished, corpus, capsys):
    path = finished / "arguments.json"
    before = path.read_bytes()

    # The folder holds that very run: it would refuse any other.
    train_command.main(
        ["--run-dir", str(finished), "--from-arguments", str(path)]
    )

    output = capsys.readouterr().out
    assert f"repeats {path} exactly" in output
    assert "continuing after update 3" in output
    assert path.read_bytes() == before


def test_options_win_over_the_arguments_of_a_run(finished, tmp_path):
    path = finished / "arguments.json"
    options = ["--run-dir", str(tmp_path), "--from-arguments", str(path)]

    given = parse_options([*options, "--seed", "7"])
    training = given.training
    assert (training.seed, training.batch_tokens) == (7, 64)
    assert given.numbers.hidden_dim == 8
    assert given.corpus.train_source.name == "train-source"
    assert given.run.run_dir == tmp_path
    given = parse_options([*options, "--dataset", "demo"])
    corpus = given.corpus
    assert (corpus.dataset, corpus.train_source) == ("demo", None)
    assert given.training.seed == 0
    corpus = parse_options([*options, "--mixture", "m.json"]).corpus
    assert (corpus.mixture.name, corpus.train_source) == ("m.json", None)
    assert corpus.validation_source.name == "validation-source"


def test_what_differs_from_the_arguments_of_a_run_is_told(
    finished, tmp_path, capsys
):
    description = json.loads((finished / "arguments.json").read_text())
    description["packages"]["keras"] = "3.0.0"
    other = tmp_path / "arguments.json"
    other.write_text(json.dumps(description))
    options = ["--run-dir", tmp_path / "run", "--from-arguments", other]

    with pytest.raises(SystemExit):
        train_command.main([*map(str, options), "--vocabulary-size=9000"])

    line = capsys.readouterr().out.splitlines()[0]
    assert line == (
        f"repeats {other} but for vocabulary_size: 340 there, 9000 here; "
        f"keras: 3.0.0 there, {keras.__version__} here"
    )
    # One written by hand has no more than arguments.
    other.write_text(json.dumps({"arguments": description["arguments"]}))
    with pytest.raises(SystemExit):
        train_command.main([*map(str, options), "--vocabulary-size=9000"])
    assert "num_layers: 6 there, 1 here" in capsys.readouterr().out
    description["arguments"]["bogus"] = 1
    other.write_text(json.dumps(description))
    assert "with bogus" in refusal(capsys, options)


def test_a_run_starts_from_the_model_of_another(
    finished, corpus, tmp_path, capsys
):
    start = tmp_path / "start"
    shutil.copytree(finished, start)
    texts = list(corpus)
    texts[3] = texts[1]  # Of these a vocabulary would be another one.
    command = [
        *["--run-dir", str(tmp_path / "run"), "--init-from", str(start)],
        *["--steps", "1", "--learning-rate-scale", "1e-30", *texts],
        "--average-decay=0.9",  # It starts from these weights, too.
    ]

    train_command.main(command)

    old, new = (
        keras.saving.load_model(folder / "model.keras")
        for folder in (start, tmp_path / "run")
    )
    for a, b in zip(old.get_weights(), new.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert new.sequence_length == 90
    proto = (start / "tokenizer.model").read_bytes()
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == proto
    path = tmp_path / "run" / "arguments.json"
    description = json.loads(path.read_text())
    assert description["preset"]["hidden_dim"] == 8
    assert description["init"]["tokenizer"] == hashlib.sha256(proto).hexdigest()
    given = parse_options(["--run-dir", "x", "--from-arguments", str(path)])
    _, preset = resolve(given, load_finished(given.run.init_from))
    assert preset == read_preset(description)

    new.embedding.embeddings.assign(2 * new.embedding.embeddings)
    new.save(start / "model.keras")
    line = refusal(capsys, command)
    assert "weights: " in line
    assert "tokenizer: " not in line


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--hidden-dim", "16"], "--hidden-dim 16, which is 8 there"),
        (["--preset", "base"], "Received: --num-layers 6, which is 1 there, -"),
        (["--vocabulary-size", "341"], "-size 341, which is 340 there"),
    ],
)
def test_a_model_keeps_its_shape(
    finished, corpus, tmp_path, capsys, changes, message
):
    options = ["--run-dir", tmp_path, "--init-from", finished, *corpus]
    line = refusal(capsys, [*options, "--dropout", "0.2", *changes])

    assert message in line
    assert "dropout" not in line
    assert not (tmp_path / "arguments.json").exists()


def test_learned_positions_keep_their_number(finished, tmp_path, capsys):
    run_dir = tmp_path / "learned"
    shutil.copytree(finished, run_dir)
    path = run_dir / "arguments.json"
    description = json.loads(path.read_text())
    start = load_finished(run_dir)
    start.check_shape(start.preset, None, 91)
    description["preset"]["positions"] = "learned"
    path.write_text(json.dumps(description))
    start = load_finished(run_dir)

    start.check_shape(start.preset, None, 90)
    with pytest.raises(UserError, match="--max-length 91, which is 90 there"):
        start.check_shape(start.preset, None, 91)


def test_a_run_that_has_not_ended_is_no_start(finished, tmp_path):
    shutil.copy(finished / "arguments.json", tmp_path)

    with pytest.raises(UserError, match="which has no model.keras"):
        load_finished(tmp_path)


def test_too_little_memory_ends_in_one_line(
    corpus, tmp_path, capsys, monkeypatch
):
    def fail(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM (512, 9)\nx")

    monkeypatch.setattr(train_command.fit, "fit", fail)

    line = refusal(capsys, ["--run-dir", tmp_path, *corpus, *TINY])

    assert "lower --max-tokens-per-replica" in line
    assert line.endswith("Received: OOM (512, 9)")


def test_asks_tensorflow_for_the_same_bits(corpus, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        tf.config.experimental,
        "enable_op_determinism",
        lambda: asked.append(True),
    )

    train_command.main(
        [*corpus, *TINY, "--deterministic", "--run-dir", str(tmp_path)]
    )

    assert asked == [True]


@pytest.mark.slow
def test_half_precision_learns_as_well(tmp_path):
    """300 updates on the embedded corpus, in each precision."""
    losses = {}
    for precision in ("float32", "bfloat16", "float16"):
        run_dir = tmp_path / precision
        train_command.main(
            [
                *("--dataset=demo", "--preset=tiny", "--num-layers=1"),
                *("--hidden-dim=64", "--intermediate-dim=128"),
                *("--num-heads=2", "--steps=300", "--warmup-steps=150"),
                *("--batch-tokens=512", "--round-steps=300", "--dropout=0.1"),
                f"--cache-dir={tmp_path / 'encoded'}",
                f"--precision={precision}",
                f"--run-dir={run_dir}",
            ]
        )
        with (run_dir / "history.csv").open(newline="") as file:
            (row,) = csv.DictReader(file)
        losses[precision] = float(row["val_loss"])

    print(losses)
    assert losses["float32"] < 5  # 7.3 is that of equal probabilities.
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.02)
    assert losses["float16"] == pytest.approx(losses["float32"], rel=0.02)
