"""Tests of `paper.table3` and of what it writes."""

import json
import pathlib
import shutil

import keras
import numpy as np
import pytest
import sacrebleu
import sentencepiece

from command_line.errors import UserError
from keras_transformer import PRESETS
from paper.table3 import __main__ as table3, report
from paper.table3.results import TRANSLATIONS, read_row
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


def read_table(run_dir):
    return json.loads((run_dir / "table3.json").read_text())


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
    assert read_table(finished)["rows"]["d-drop0.0"]["change"] == "P_drop=0.0"


@pytest.mark.slow
def test_the_table_holds_what_the_model_of_a_row_gives(finished, corpus):
    row = read_table(finished)["rows"]["d-drop0.0"]["ours"]
    folder = finished / "d-drop0.0"
    model = keras.saving.load_model(folder / "model.keras")
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "tokenizer.model")
    )
    source, target = (
        pathlib.Path(path).read_text().splitlines() for path in corpus[5::2]
    )

    source_ids, labels = (
        encode(pieces, [line.encode() for line in side]) for side in (source, target)
    )
    total = -target_log_probabilities(model, source_ids, labels).sum()
    count = (labels > 0).sum()
    text = json.loads((folder / "validation.json").read_text())

    assert row["perplexity"] == pytest.approx(np.exp(total / count), rel=1e-4)
    assert row["parameters"] == model.count_params()
    assert text["references"] == target
    assert len(text["translations"]) == len(source)
    expected = sacrebleu.corpus_bleu(text["translations"], [target]).score
    assert row["bleu"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
def test_the_same_command_trains_nothing_that_is_there(
    finished, corpus, monkeypatch, capsys
):
    monkeypatch.setattr(table3, "train_row", None)
    before = (finished / "table3.json").read_bytes()

    train_rows(finished, corpus)

    assert "row 2 of 2, d-drop0.0: there" in capsys.readouterr().out
    assert (finished / "table3.json").read_bytes() == before


@pytest.mark.slow
def test_the_same_command_goes_on_where_it_was_killed(copy, corpus, monkeypatch):
    text = (copy / "d-drop0.0" / "validation.json").read_bytes()
    (copy / "d-drop0.0" / "validation.json").unlink()  # Killed before it.
    trained = []
    monkeypatch.setattr(table3.train_command, "main", lambda argv: trained.append(argv))

    train_rows(copy, corpus)

    (argv,) = trained
    assert argv[-1] == str(copy / "d-drop0.0")
    assert (copy / "d-drop0.0" / "validation.json").read_bytes() == text


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
    assert list(read_table(copy)["rows"]) == ["base"]


@pytest.mark.slow
def test_a_table_of_some_rows_says_which_are_missing(finished, capsys):
    report.write(finished)

    table = (finished / "table3.md").read_text()
    assert table in capsys.readouterr().out
    assert "Not there yet: a-h1, a-h4," in table
    assert "\nBase here: N=1, d_model=8, d_ff=32, h=8, d_k=1, d_v=1, " in table
    assert "cannot be told from one run of base" in table
    row = next(line for line in table.splitlines() if "| d-drop0.0 " in line)
    assert " 5.77 " in row
    assert " +17.3 " in row  # 5.77 / 4.92.
    assert " -1.2 " in row


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 4])
def test_rows_that_were_not_trained_as_long_as_base_are_missing(copy, steps):
    path = copy / "d-drop0.0" / "arguments.json"
    path.write_text(path.read_text().replace('"steps": 2', f'"steps": {steps}'))

    report.write(copy)

    assert list(read_table(copy)["rows"]) == ["base"]


def test_a_row_without_a_whole_epoch_is_missing(tmp_path):
    """Its only epoch was a short one, which a longer run takes back."""
    description = {
        "arguments": {"vocabulary_size": 1, "max_length": 1},
        "preset": {"description": "", **PRESETS["tiny"].hyperparameters()},
        "steps_per_epoch": 3,
        "packages": {},
    }
    translations = {"step": 2, "translations": [], "references": []}
    for name, content in (
        ("arguments.json", description),
        ("report.json", {}),
        (TRANSLATIONS, translations),
    ):
        (tmp_path / name).write_text(json.dumps(content))

    assert read_row(tmp_path) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dropout", "0.3"], "themselves. Received: --dropout"),
        (["--average", "3"], "themselves. Received: --average"),
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


@pytest.mark.slow
def test_refuses_rows_of_two_validation_sets(copy):
    path = copy / "d-drop0.0" / "validation.json"
    text = json.loads(path.read_text())
    text["references"][0] += "."
    path.write_text(json.dumps(text))

    with pytest.raises(UserError, match="one validation set"):
        report.write(copy)
