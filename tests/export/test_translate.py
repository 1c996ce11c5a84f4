"""Tests of `export.translate`, `export.evaluate` and `python -m export`."""

import gzip
import hashlib
import io
import json
import pathlib
import shutil
import sys

import numpy as np
import pytest

import export.__main__ as export_command
from export import evaluate
from export import explain
from export import translate
from export.bundle.saved_model import load_translate
from export.bundle.versions import locked
from tests.helpers.refusal import refusal
from tests.helpers.sentences import SENTENCES
from tests.helpers.translations import answer
from tests.helpers.translations import translated


class Spy:
    """Translates into capitals; remembers the batches."""

    def __init__(self):
        self.batches = []

    def __call__(self, text):
        self.batches.append(text)
        return answer([line.upper() for line in text])


def test_keeps_the_order_and_sorts_by_length_within_a_window():
    random = np.random.default_rng(0)
    lines = [b"a" * n + b"\n" for n in random.integers(0, 99, 5000)]
    spy = Spy()

    result = list(translated(spy, lines, 64))

    assert result == [line.strip().upper() for line in lines]
    lengths = [len(line) for batch in spy.batches for line in batch]
    assert lengths[: translate.WINDOW] == sorted(lengths[: translate.WINDOW])


def test_batches_hold_as_many_tokens_as_they_may():
    random = np.random.default_rng(0)
    lines = [b"a" * n for n in random.integers(0, 200, 500)]

    batches = list(translate.cut_batches(lines, 64))

    assert sorted(i for batch in batches for i in batch) == list(range(500))
    sizes = []
    for batch in batches:
        longest = max(1 + len(lines[i]) // 4 for i in batch)
        sizes.append(longest * len(batch))
        assert sizes[-1] <= 64
    assert np.mean(sizes[:-1]) > 40
    # One line is a batch, however long it is.
    assert list(translate.cut_batches([b"a" * 999], 64)) == [[0]]


def test_reads_no_further_than_a_window():
    read = []

    def endless():
        while True:
            read.append(b"line")
            yield b"line"

    next(translated(Spy(), endless(), 64))

    assert len(read) == translate.WINDOW


def test_a_line_stays_a_line():
    def translator(text):
        return answer([b"a\nb\r\nc"])

    assert list(translated(translator, [b"x"], 1)) == [b"a b c"]


def test_lines_that_were_cut_are_counted(tmp_path, monkeypatch, capsys):
    def cut(text):
        return answer([line.upper() for line in text], limit=3)

    for module in (evaluate, translate):
        monkeypatch.setattr(module, "load", lambda args: cut)
    path = tmp_path / "in"
    path.write_text("four\none\nseven\n")
    (tmp_path / "short").write_text("one\n")
    there = ["--export-dir=x", f"--output={tmp_path / 'out'}"]
    note = "2 of 3 lines were cut at the model's limit of tokens\n"

    translate.main([*there, f"--input={path}"])
    assert capsys.readouterr().err == note
    assert (tmp_path / "out").read_text() == "FOU\nONE\nSEV\n"
    translate.main([*there, f"--input={tmp_path / 'short'}"])
    assert capsys.readouterr().err == ""
    pair = [f"--source={path}", f"--reference={path}"]
    evaluate.main(["--export-dir=x", *pair, "--json"])
    captured = capsys.readouterr()
    assert captured.err == note
    assert json.loads(captured.out)["truncated"] == 2


def test_a_byte_order_mark_is_not_translated(tmp_path, monkeypatch):
    spy = Spy()
    monkeypatch.setattr(translate, "load", lambda args: spy)
    (tmp_path / "in").write_text("\ufeffone\n\ufefftwo\n")
    files = [f"--input={tmp_path / 'in'}", f"--output={tmp_path / 'out'}"]

    translate.main(["--export-dir=x", *files])

    assert (tmp_path / "out").read_text() == "ONE\n\ufeffTWO\n"


def test_translates_a_file_and_standard_input_alike(
    export_dir, tmp_path, monkeypatch, capsysbinary
):
    text = "\n".join([*SENTENCES, "", "last"]).encode()
    (tmp_path / "in").write_bytes(text)
    expected = load_translate(export_dir)([*SENTENCES, "", "last"])
    expected = b"".join(
        b" ".join(t.splitlines()) + b"\n"
        for t in expected["translation"].numpy()
    )
    arguments = ["--export-dir", str(export_dir), "--batch-tokens", "30"]

    files = ["--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")]
    translate.main([*arguments, *files])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    translate.main(arguments)

    assert (tmp_path / "out").read_bytes() == expected
    assert capsysbinary.readouterr().out == expected


def test_does_not_write_over_its_input(export_dir, tmp_path, capsys):
    path = tmp_path / "text"
    path.write_bytes(b"Two cats.\n")
    arguments = ["--export-dir", export_dir, "--input", path, "--output", path]

    line = refusal(capsys, translate.main, arguments)

    assert "--output must be another file than --input" in line
    assert path.read_bytes() == b"Two cats.\n"


def test_evaluates_what_the_model_says(tmp_path, capsys, monkeypatch):
    def copy(text):
        lines = [t if isinstance(t, bytes) else t.encode() for t in text]
        return answer(lines)

    monkeypatch.setattr(evaluate, "load", lambda args: copy)
    references = [SENTENCES[0].upper(), *SENTENCES[1:]]
    packed = gzip.compress("\r\n".join(SENTENCES).encode())
    (tmp_path / "source").write_bytes(packed)
    (tmp_path / "reference").write_text("\n".join(references) + "\n")
    arguments = [
        f"--export-dir={tmp_path}",
        f"--source={tmp_path / 'source'}",
        f"--reference={tmp_path / 'reference'}",
    ]

    evaluate.main([*arguments, "--json"])
    results = json.loads(capsys.readouterr().out)
    evaluate.main(arguments)
    text = capsys.readouterr().out
    baseline = f"--baseline={tmp_path / 'reference'}"
    evaluate.main([*arguments, baseline, "--json"])
    compared = json.loads(capsys.readouterr().out)["bleu"]

    assert results["bleu_lowercase"]["score"] == pytest.approx(100)
    assert 0 < results["bleu"]["score"] < 100
    assert "case:lc" in results["bleu_lowercase"]["signature"]
    assert results["sentences_per_second"] > 0
    assert f"{results['bleu']['score']:.2f}" in text
    assert results["bleu"]["signature"] in text
    assert compared["score"] == results["bleu"]["score"]
    assert compared["baseline"]["score"] == pytest.approx(100)
    low, high = (compared["confidence"][key] for key in ("low", "high"))
    assert low < compared["score"] < high


def test_scores_stay_with_the_version(tmp_path, capsys, monkeypatch):
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "saved_model.pb").touch()
    monkeypatch.setattr(evaluate, "load", lambda args: Spy())
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second"):
        pathlib.Path(name).write_text("A LINE OF CAPITALS\n")
        evaluate.main(
            [
                *("--export-dir=.", f"--source={name}"),
                *("--reference=first", "--record"),
            ]
        )

    scores = json.loads((tmp_path / "2/assets.extra/scores.json").read_text())
    assert set(scores) == {"first", "second"}
    assert scores["second"]["bleu"]["score"] == pytest.approx(100)
    digest = hashlib.sha256(b"A LINE OF CAPITALS\n").hexdigest()
    assert scores["first"]["sha256"] == {"source": digest, "reference": digest}
    assert not (tmp_path / "1/assets.extra").exists()


@pytest.fixture
def version(tmp_path, monkeypatch):
    """The folder of a version that says everything in capitals."""
    folder = tmp_path / "export" / "1"
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").touch()
    monkeypatch.setattr(evaluate, "load", lambda args: Spy())
    return folder


def record(version, source):
    """Evaluates a file as its own reference."""
    evaluate.main(
        [
            *(f"--export-dir={version.parent}", "--record"),
            *(f"--source={source}", f"--reference={source}"),
        ]
    )


def test_files_of_one_name_keep_their_scores(version, tmp_path):
    for folder in ("a", "b", "a", "b"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "test.en").write_text(f"FOLDER {folder}\n")
        record(version, tmp_path / folder / "test.en")

    scores = json.loads((version / "assets.extra/scores.json").read_text())
    assert set(scores) == {"test.en", "test.en 2"}
    assert scores["test.en"]["sha256"] != scores["test.en 2"]["sha256"]


def test_scores_that_cannot_be_recorded_are_printed(version, tmp_path, capsys):
    (tmp_path / "text").write_text("A LINE OF CAPITALS\n")

    with locked(version.parent), pytest.raises(SystemExit):
        record(version, tmp_path / "text")

    captured = capsys.readouterr()
    assert "BLEU              100.00" in captured.out
    assert "another process is writing to" in captured.err
    assert not (version / "assets.extra").exists()


def test_damaged_scores_are_told_before_the_work(version, tmp_path, capsys):
    (tmp_path / "text").write_text("A LINE\n")
    (version / "assets.extra").mkdir()
    path = version / "assets.extra" / "scores.json"
    path.write_text('{"text"')

    with pytest.raises(SystemExit):
        record(version, tmp_path / "text")

    captured = capsys.readouterr()
    assert f"{path} must be whole. Received: JSONDecodeError" in captured.err
    assert captured.out == ""
    assert path.read_text() == '{"text"'


@pytest.mark.parametrize(
    ("name", "main", "options"),
    [
        ("variables/variables.data-00000-of-00001", translate.main, []),
        ("saved_model.pb", explain.main, ["--text=a", "--output=page.html"]),
    ],
)
def test_a_damaged_export_is_named_in_one_line(
    export_dir, tmp_path, capsys, name, main, options
):
    shutil.copytree(export_dir, tmp_path / "export")
    version = tmp_path / "export" / "1"
    cut_in_half(version / name)

    line = refusal(capsys, main, ["--export-dir", version.parent, *options])

    assert (
        f"{version} must be whole; `python -m export.check` says more. "
        "Received: "
    ) in line


@pytest.mark.parametrize("name", ["arguments.json", "model.keras"])
def test_a_damaged_run_is_named_in_one_line(run_dir, tmp_path, capsys, name):
    run = tmp_path / "run"
    shutil.copytree(run_dir, run)
    (run / "arguments.json").write_text('{"arguments": {}}')
    cut_in_half(run / name)
    arguments = ["--run-dir", run, "--export-dir", tmp_path / "export"]

    line = refusal(capsys, export_command.main, arguments)

    assert f"{run / name} must be whole. Received: " in line


def cut_in_half(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.slow
def test_exports_from_the_command_line(run_dir, tmp_path, capsys):
    folder = tmp_path / "export"
    arguments = [f"--run-dir={run_dir}", f"--export-dir={folder}"]
    export_command.main([*arguments, "--beam-size=1", "--version=7"])

    assert (folder / "7" / "saved_model.pb").exists()
    assert f"--export-dir {folder}" in capsys.readouterr().out
    bundle = json.loads((folder / "7/assets.extra/bundle.json").read_text())
    assert bundle["model_name"] == "export"
    assert bundle["settings"]["beam_size"] == 1
    line = refusal(capsys, export_command.main, [*arguments, "--version=7"])
    assert "--version must be" in line


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--beam-size=0", "--beam-size must be between 1 and 100. Received: 0"),
        ("--beam-size=5000", "--beam-size must be between 1 and 100"),
        ("--length-penalty=nan", "--length-penalty must be between -10 and 10"),
        ("--length-penalty=1e39", "--length-penalty must be between -10"),
        ("--max-extra-length=-1", "--max-extra-length must be between 0"),
        ("--version=-1", "--version must be 0 or more"),
        ("--model-name=a b", "--model-name must be of letters"),
        ("--beam-size=2", "--run-dir must be the folder of a finished"),
    ],
)
def test_export_refuses_in_one_line(tmp_path, capsys, argument, message):
    arguments = ["--run-dir", tmp_path, "--export-dir", tmp_path, argument]

    assert message in refusal(capsys, export_command.main, arguments)


def test_export_refuses_a_layer_that_is_not_there(run_dir, tmp_path, capsys):
    arguments = ["--run-dir", run_dir, "--export-dir", tmp_path / "export"]

    line = refusal(
        capsys, export_command.main, [*arguments, "--align-layer", "2"]
    )

    assert "`align_layer` must be between -2 and 1" in line
    assert not list(tmp_path.glob("export/*"))


def test_translate_and_evaluate_refuse_in_one_line(
    export_dir, tmp_path, capsys
):
    (tmp_path / "two").write_text("a\nb\n")
    (tmp_path / "one").write_text("a\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    there = ["--export-dir", export_dir]

    line = refusal(capsys, translate.main, ["--export-dir", tmp_path / "no"])
    assert "`python -m export` wrote" in line
    line = refusal(capsys, translate.main, [*there, "--batch-tokens", "0"])
    assert "--batch-tokens must be 1 or more. Received: 0" in line
    line = refusal(capsys, translate.main, [*there, "--input", tmp_path / "x"])
    assert "No such file" in line
    pairs = ["--source", tmp_path / "two", "--reference", tmp_path / "one"]
    line = refusal(capsys, evaluate.main, [*there, *pairs])
    assert "2 lines in" in line
    assert "1 lines in" in line
    pairs = ["--source", tmp_path / "latin", "--reference", tmp_path / "one"]
    line = refusal(capsys, evaluate.main, [*there, *pairs])
    assert "latin, line 1, byte 0xe9 at column 4" in line
    (tmp_path / "empty").touch()
    pairs = ["--source", tmp_path / "empty", "--reference", tmp_path / "one"]
    line = refusal(capsys, evaluate.main, [*there, *pairs])
    assert "a text file may not be empty" in line
    pairs = ["--source", tmp_path / "one", "--reference", tmp_path / "one"]
    elsewhere = [*pairs, "--record", "--server", "localhost:1"]
    line = refusal(capsys, evaluate.main, elsewhere)
    assert "--record needs --export-dir. Received: --server localhost:1" in line
    (tmp_path / "ct2" / "1").mkdir(parents=True)
    (tmp_path / "ct2" / "1" / "model.bin").touch()
    elsewhere = [*pairs, "--record", "--export-dir", tmp_path / "ct2"]
    line = refusal(capsys, evaluate.main, elsewhere)
    assert f"Received: {tmp_path / 'ct2'}, of the format ctranslate2" in line
