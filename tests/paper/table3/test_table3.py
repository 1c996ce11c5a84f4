"""Tests of `paper.table3` and of what it writes."""

import json
import math
import pathlib
import shutil

import keras
import numpy as np
import pytest
import sentencepiece

from command_line.errors import UserError
from keras_transformer import PRESETS
from paper.table3 import __main__ as table3, report
from paper.table3.rows import ROWS, SIZES, scale_row
from tests.helpers.error_capture import refusal
from tests.helpers.oracles.numpy_oracles import encode, target_log_probabilities

TOY = "--scale 64 --layer-scale 6 --steps 2 --vocabulary-size 340"
TOY += " --batch-tokens 64 --max-length 90 --steps-per-epoch 1 --base-runs 1"


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    """The folder of a table of two rows."""
    run_dir = tmp_path_factory.mktemp("tables") / "first"
    train_rows(run_dir, corpus)
    return run_dir


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "copy")


def train_rows(run_dir, corpus, *options):
    table3.main(arguments_of(run_dir, corpus, *options))


def arguments_of(run_dir, corpus, *options):
    options = ["--rows", "d-drop0.0", *options]
    where = ["--run-dir", str(run_dir)]
    return [*where, *TOY.split(), *corpus, *options]


@pytest.mark.parametrize("name", ROWS)
def test_the_scale_of_the_documents_keeps_every_ratio(name):
    scaled, base = (scale_row(row, 4, 2, 1300) for row in (name, "base"))

    scaled, base = scaled.hyperparameters(), base.hyperparameters()
    paper, paper_base = (
        PRESETS[name].hyperparameters(),
        PRESETS["base"].hyperparameters(),
    )
    for field in (*SIZES, "num_heads", "steps"):
        ratio = scaled[field] / base[field]
        assert ratio == paper[field] / paper_base[field]
    kept = ("num_heads", "dropout", "label_smoothing", "positions")
    assert all(scaled[f] == paper[f] for f in kept)


@pytest.mark.slow
def test_a_row_differs_from_base_in_its_cell_alone(finished):
    presets = {
        name: json.loads((finished / name / "arguments.json").read_text())
        for name in ("base", "d-drop0.0")
    }
    base, row = (presets[name]["preset"] for name in presets)
    differing = {key for key in base if base[key] != row[key]}

    assert differing == {"description", "dropout"}
    assert (base["hidden_dim"], base["num_heads"], base["key_dim"]) == (8, 8, 1)
    assert presets["base"]["arguments"]["average"] == 1
    assert presets["base"]["corpus"] == presets["d-drop0.0"]["corpus"]


@pytest.mark.slow
def test_the_table_holds_what_the_model_of_a_row_gives(finished, corpus):
    row = report.read_rows(finished)["d-drop0.0"]
    folder = finished / "d-drop0.0"
    model = keras.saving.load_model(folder / "model.keras")
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "tokenizer.model")
    )
    source_ids, labels = (
        encode(pieces, pathlib.Path(path).read_bytes().splitlines())
        for path in corpus[5::2]
    )
    total = -target_log_probabilities(model, source_ids, labels).sum()
    count = (labels > 0).sum()

    assert row.log_perplexity == pytest.approx(total / count, rel=1e-4)
    assert row.millions == model.count_params() / 1e6
    scores = json.loads((folder / "model.json").read_text())["validation"]
    assert row.bleu == scores["bleu"]


@pytest.mark.slow
def test_the_same_command_trains_nothing_that_is_there(
    finished, corpus, monkeypatch, capsys
):
    monkeypatch.setattr(table3, "train_row", None)
    before = (finished / "table3.md").read_text()

    train_rows(finished, corpus)

    printed = capsys.readouterr().out
    assert "row 2 of 2, d-drop0.0: there" in printed
    assert before in printed


@pytest.mark.slow
def test_the_same_command_goes_on_where_it_was_killed(copy, corpus, monkeypatch):
    (copy / "d-drop0.0" / "model.json").unlink()  # Killed before it.
    trained = []
    monkeypatch.setattr(table3.train_command, "main", trained.append)

    train_rows(copy, corpus)

    (argv,) = trained
    assert argv[-1] == str(copy / "d-drop0.0")


@pytest.mark.slow
def test_a_signal_ends_all_rows_and_a_row_that_fails_only_itself(
    copy, corpus, monkeypatch, capsys
):
    shutil.rmtree(copy / "d-drop0.0")
    codes = [143, 2, 0]

    def end(argv):
        raise SystemExit(codes[0])

    monkeypatch.setattr(table3.train_command, "main", end)
    with pytest.raises(SystemExit) as exit_:
        train_rows(copy, corpus)
    assert exit_.value.code == 143

    codes.pop(0)
    message = refusal(capsys, table3.main, arguments_of(copy, corpus))

    assert "could not be trained" in message
    assert message.endswith("d-drop0.0")
    assert list(report.read_rows(copy)) == ["base"]


@pytest.mark.slow
def test_a_table_of_some_rows_says_which_are_missing(finished):
    table = report.write(finished)

    assert (finished / "table3.md").read_text() == table
    assert "Not there yet: a-h1, a-h4," in table
    assert "\nBase here: N=1, d_model=8, d_ff=32, h=8, d_k=1, d_v=1, " in table
    assert "19 times" not in table  # There is one run of base.
    row = next(line for line in table.splitlines() if "| d-drop0.0 " in line)
    assert row.startswith("| d-drop0.0 | P_drop=0.0 | 5.77 | ")
    assert " +17.3 " in row  # 5.77 / 4.92.
    assert " -1.2 " in row


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"steps": 2', '"steps": 1'),
        ('"steps": 2', '"steps": 4'),
        ('"validation": "', '"validation": "other'),
    ],
)
def test_rows_of_other_conditions_than_base_are_missing(copy, old, new):
    path = copy / "d-drop0.0" / "arguments.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert list(report.read_rows(copy)) == ["base"]


@pytest.mark.slow
def test_a_row_whose_model_is_of_another_update_is_missing(copy):
    path = copy / "d-drop0.0" / "model.json"
    path.write_text(path.read_text().replace("ckpt-2", "ckpt-1"))
    assert list(report.read_rows(copy)) == ["base"]


def test_the_margin_comes_from_the_runs_of_base():
    rows = {
        name: report.Row(PRESETS["base"], {}, "", math.log(5.0) + 0.04 * x, 25 + x, 65)
        for name, x in {"base": 0.0, "base-run2": 0.3, "base-run3": -0.3}.items()
    }
    rows["big"] = report.Row(PRESETS["big"], {}, "", math.log(4.0), 27.0, 213)

    table = report.format_report(rows)

    # t s √(1 + 1/n) of three runs, with s = 0.3.
    margin = 4.303 * 0.3 * math.sqrt(4 / 3)
    assert f"within {margin:.2f} BLEU" in table
    assert f"and {100 * math.expm1(0.04 * margin):.1f} % of perplexity" in table
    (row,) = (line for line in table.splitlines() if "| big " in line)
    assert row.endswith("| 213 | 213.00 | -12.0 | -20.0 | +0.6 | +2.0 |")


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_another_run_is_within_the_margin_19_times_of_20(count):
    runs = np.random.default_rng(3).normal(30, 0.4, size=(20_000, count + 1))

    margins = [report.seed_margin(others) for others in runs[:, 1:].tolist()]

    away = np.abs(runs[:, 0] - runs[:, 1:].mean(axis=1))
    assert np.mean(away < margins) == pytest.approx(0.95, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dropout", "0.3"], "themselves. Received: --dropout"),
        (["--validate-bleu", "0"], "themselves. Received: --validate-bleu"),
        (["--scale", "32"], "hidden_dim: 8 there, 16 here"),
        (["--seed", "1"], "themselves. Received: --seed"),
    ],
)
def test_refuses_what_makes_rows_unlike(finished, corpus, capsys, options, message):
    arguments = arguments_of(finished, corpus, *options)
    assert message in refusal(capsys, table3.main, arguments)


def test_refuses_rows_that_would_hold_out_other_pairs(corpus, tmp_path, capsys):
    line = refusal(capsys, table3.main, arguments_of(tmp_path, corpus[:4]))

    assert "each row has a seed of its own" in line


def test_refuses_a_report_without_base(tmp_path):
    with pytest.raises(UserError, match="must hold the row base"):
        report.write(tmp_path)
