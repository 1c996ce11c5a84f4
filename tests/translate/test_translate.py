import gzip
import hashlib
import json
import os
import shutil

import numpy as np
import pytest

import export.__main__ as export_command
from command_line.errors import UserError
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_models import FunctionRuntime, make_outputs, translate_lines
from translate import __main__ as translate, evaluate, explain
from translate.line_batching import WINDOW, cut_line_batches


class Spy:
    """Translates into capitals; remembers the batches."""

    def __init__(self):
        self.batches = []

    def __call__(self, text):
        self.batches.append(text)
        return make_outputs([line.upper() for line in text])


def test_keeps_the_order_and_sorts_by_length_within_a_window():
    random = np.random.default_rng(0)
    lines = [b"a" * n + b"\n" for n in random.integers(0, 99, 5000)]
    spy = Spy()

    result = list(translate_lines(spy, lines, 64))

    assert result == [line.strip().upper() for line in lines]
    lengths = [len(line) for batch in spy.batches for line in batch]
    assert lengths[:WINDOW] == sorted(lengths[:WINDOW])


def test_batches_hold_as_many_tokens_as_they_may():
    random = np.random.default_rng(0)
    lines = [b"a" * n for n in random.integers(0, 200, 500)]

    batches = list(cut_line_batches(lines, 64))

    assert sorted(i for batch in batches for i in batch) == list(range(500))
    sizes = []
    for batch in batches:
        longest = max(1 + len(lines[i]) // 4 for i in batch)
        sizes.append(longest * len(batch))
        assert sizes[-1] <= 64
    assert np.mean(sizes[:-1]) > 40
    # One line is a batch, however long it is; short lines have a bound.
    assert list(cut_line_batches([b"a" * 999], 64)) == [[0]]
    batches = cut_line_batches([b"a"] * 1024, 1024)
    assert {len(batch) for batch in batches} == {128}


def test_reads_no_further_than_a_window():
    read = []

    def endless():
        while True:
            read.append(b"line")
            yield b"line"

    next(translate_lines(Spy(), endless(), 64))

    assert len(read) == WINDOW


def test_a_line_stays_a_line():
    def translator(text):
        return make_outputs([b"a\nb\r\nc"])

    assert list(translate_lines(translator, [b"x"], 1)) == [b"a b c"]


@pytest.fixture
def run(tmp_path, monkeypatch, translate_file):
    """Function that translates by another function; its output is there before."""
    (tmp_path / "out").write_text("what was there")

    def run_with(function, content, *options):
        runtime = FunctionRuntime(function)
        monkeypatch.setattr(translate, "load", lambda *options: runtime)
        return translate_file(content, "--export-dir=x", *options)

    return run_with


def test_lines_that_were_cut_are_counted(run, tmp_path, monkeypatch, capsys):
    def cut(text):
        return make_outputs([line.upper() for line in text], limit=3)

    run(cut, b"one\n")
    assert capsys.readouterr().err == ""
    assert run(cut, b"four\none\nseven\n") == b"FOU\nONE\nSEV\n"
    note = "2 of 3 lines were cut at the model's limit of tokens\n"
    assert capsys.readouterr().err == note
    monkeypatch.setattr(evaluate, "load", lambda *options: FunctionRuntime(cut))
    pair = [f"--{side}={tmp_path / 'in'}" for side in ("source", "reference")]
    evaluate.main(["--export-dir=x", *pair, "--json"])
    captured = capsys.readouterr()
    assert captured.err == note
    assert json.loads(captured.out)["truncated"] == 2


def test_a_byte_order_mark_is_not_translated(run):
    text = "\ufeffone\n\ufefftwo\n".encode()

    assert run(Spy(), text) == "ONE\n\ufeffTWO\n".encode()


GZIP = gzip.compress(b"one\r\ntwo\n")


def test_gzip_is_read_as_in_training(run, tmp_path, capsys):
    (tmp_path / "out").chmod(0o640)
    spy = Spy()

    assert run(spy, GZIP) == b"ONE\nTWO\n"

    assert spy.batches == [[b"one", b"two"]]  # Without their ends.
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640
    with pytest.raises(SystemExit):
        run(Spy(), GZIP[:-4])
    message = f"not a whole gzip or zip file: {tmp_path / 'in'}"
    assert message in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == "ONE\nTWO\n"
    assert not (tmp_path / "out.part").exists()  # Nothing was written.


@pytest.mark.parametrize("error", [OSError("gone"), KeyboardInterrupt()])
def test_an_error_leaves_the_output_that_was_there(run, tmp_path, monkeypatch, error):
    class Fails(Spy):
        def __call__(self, text):
            if len(self.batches) == 2:
                raise error
            return super().__call__(text)

    monkeypatch.setattr("translate.line_batching.WINDOW", 2)

    with pytest.raises((SystemExit, KeyboardInterrupt)):
        run(Fails(), b"one\ntwo\nthree\n", "--batch-tokens=1")

    assert (tmp_path / "out").read_text() == "what was there"
    assert (tmp_path / "out.part").read_text() == "ONE\nTWO\n"


def test_an_output_that_is_no_file_is_written_at_once(run, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    run(Spy(), GZIP, f"--output={pipe}")

    assert os.read(reader, 99) == b"ONE\nTWO\n"
    os.close(reader)
    assert pipe.is_fifo()
    (tmp_path / "link").symlink_to("out")
    assert run(Spy(), GZIP, f"--output={tmp_path / 'link'}") == b"ONE\nTWO\n"
    assert (tmp_path / "link").is_symlink()


def test_evaluates_what_the_model_says(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(evaluate, "load", lambda *_: FunctionRuntime(make_outputs))
    references = [SENTENCES[0].upper(), *SENTENCES[1:]]
    packed = gzip.compress("\r\n".join(SENTENCES).encode())
    (tmp_path / "source").write_bytes(packed)
    (tmp_path / "reference").write_text("\n".join(references) + "\n")
    files = [f"--{side}={tmp_path / side}" for side in ("source", "reference")]
    arguments = [f"--export-dir={tmp_path}", *files]

    evaluate.main([*arguments, "--json"])
    results = json.loads(capsys.readouterr().out)
    evaluate.main([*arguments, "--confidence", "--json"])
    compared = json.loads(capsys.readouterr().out)["bleu"]

    assert results["bleu_lowercase"]["score"] == pytest.approx(100)
    assert 0 < results["bleu"]["score"] < 100
    assert "case:lc" in results["bleu_lowercase"]["signature"]
    assert results["sentences_per_second"] > 0
    assert compared["score"] == results["bleu"]["score"]
    low, high = (compared["confidence"][key] for key in ("low", "high"))
    assert low < compared["score"] < high

    evaluate.main([*arguments, "--at-least=1"])
    # Python prints what is no number, and exits with 1.
    with pytest.raises(SystemExit, match=r"at least 99.0. Received: \d+\.\d\d"):
        evaluate.main([*arguments, "--at-least=99"])


@pytest.mark.parametrize(
    ("name", "command", "options"),
    [
        ("variables/variables.data-00000-of-00001", translate, []),
        ("saved_model.pb", explain, ["--text=a", "--output=page.html"]),
    ],
)
def test_a_damaged_export_is_named_in_one_line(
    export_dir, tmp_path, refused, name, command, options
):
    shutil.copytree(export_dir, tmp_path / "export")
    version = tmp_path / "export" / "1"
    cut_in_half(version / name)

    line = refused(command, "--export-dir", version.parent, *options)

    assert f"{version} must be whole; `python -m export.check` says more" in line


def test_the_reference_says_what_bleu_counts(capsys):
    options = ["--export-dir=x", "--source=a.en", "--reference=a.zh.gz"]
    for more, expected in (([], "zh"), (["--bleu-tokenize=char"], "char")):
        given = evaluate.parse_options([*options, *more])
        assert evaluate.choose_tokenizer(given) == expected

    given = evaluate.parse_options([*options, "--bleu-tokenize=words"])
    with pytest.raises(UserError, match=r"must be one of .* Received: words"):
        evaluate.choose_tokenizer(given)


@pytest.mark.parametrize("name", ["arguments.json", "model.keras"])
def test_a_damaged_run_is_named_in_one_line(run_dir, tmp_path, refused, name):
    run = tmp_path / "run"
    shutil.copytree(run_dir, run)
    (run / "arguments.json").write_text('{"arguments": {}}')
    cut_in_half(run / name)
    arguments = ["--run-dir", run, "--export-dir", tmp_path / "export"]

    line = refused(export_command, *arguments)

    assert f"{run / name} must be whole. Received: " in line


def cut_in_half(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.slow
def test_exports_from_the_command_line(run_dir, tmp_path, capsys):
    folder = tmp_path / "export"
    shutil.copytree(run_dir, tmp_path / "run")
    digest = hashlib.sha256((run_dir / "model.keras").read_bytes()).hexdigest()
    sample = {"source": "Two cats sleep.", "reference": "Zwei Katzen schlafen."}
    notes = {"sha256": digest, "validation": {"bleu": 27.3}, "samples": [sample]}
    (tmp_path / "run" / "model.json").write_text(json.dumps(notes))
    folders = [f"--run-dir={tmp_path / 'run'}", f"--export-dir={folder}"]
    export_command.main([*folders, "--beam-size=1", "--version=7"])

    assert (folder / "7" / "saved_model.pb").exists()
    out = capsys.readouterr().out
    assert f"--export-dir {folder}" in out
    extra = folder / "7" / "assets.extra"
    bundle = json.loads((extra / "bundle.json").read_text())
    assert bundle["model_name"] == "export"
    assert bundle["validation"] == {"bleu": 27.3}
    asked = json.loads((extra / "samples/serving_default.json").read_text())
    assert asked["inputs"]["text"] == ["Two cats sleep."]
    assert bundle["samples"] == [sample]
    assert bundle["settings"]["beam_size"] == 1


@pytest.fixture
def glossary(tmp_path):
    (tmp_path / "terms").write_text("dog\tcão <i>\nTwo\t二\n", "utf-8")
    return f"--glossary={tmp_path / 'terms'}"


@pytest.mark.parametrize(
    ("options", "term"),
    [
        ([], "cão <i>"),
        (["--format=text"], "cão <i>"),
        (["--format=html"], "cão &lt;i>"),
    ],
)
def test_each_term_of_a_glossary_is_there(
    options, term, export_dir, translate_file, glossary
):
    text = b"The dog sees a dog.\nTwo dogs!\n"

    found = translate_file(text, f"--export-dir={export_dir}", glossary, *options)

    assert found.decode().lower().replace("&gt;", ">").count(term) == 2
    assert found.decode().count("二") == 1


def test_evaluation_counts_terms(export_dir, tmp_path, glossary, capsys):
    (tmp_path / "in").write_text("\n".join(SENTENCES))
    (tmp_path / "dogs").write_text("\n".join(["The dog.", *SENTENCES[1:]]))
    files = [f"--source={tmp_path / 'dogs'}", f"--reference={tmp_path / 'in'}"]
    arguments = [f"--export-dir={export_dir}", *files, glossary]

    evaluate.main([*arguments, "--json"])
    terms = json.loads(capsys.readouterr().out)["terms"]
    evaluate.main(arguments)

    assert terms["translated"] == terms["count"] > 0
    assert f"100.00  % of {terms['count']}\n" in capsys.readouterr().out


def test_samples_take_no_glossary(refused, glossary):
    line = refused(translate, "--export-dir=x", glossary, "--sample")
    assert "--sample must be left out with --glossary. Received: both" in line
