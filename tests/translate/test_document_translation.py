"""Tests of the formats of `translate`: by suffix, by `--format`, and no text at all."""

import gzip
import io
import lzma
import sys
import zipfile

import pytest

from documents.formats import FORMAT_OF_SUFFIX, find_format
from tests.helpers import word_documents
from tests.helpers.fake_models import FunctionRuntime, make_outputs
from tests.helpers.known_alignment_translators import word_for_word
from translate import __main__ as translate

TEXT = "1\n00:00:01,000 --> 00:00:02,000\nTwo cats. One dog.\n"
CONTENTS = {
    **dict.fromkeys(FORMAT_OF_SUFFIX, TEXT.encode()),
    ".vtt": f"WEBVTT\n\n{TEXT[2:].replace(',', '.')}".encode(),
    ".xml": b"<p>Two cats. <b>One</b> dog.</p>",
    ".docx": word_documents.wrap(f"<w:p>{word_documents.run('A cat.')}</w:p>"),
}


def shout(lines):
    return make_outputs([b"".join([line.upper(), b"!"]) for line in lines])


@pytest.fixture(autouse=True)
def model(monkeypatch):
    """Documents are translated into capitals; lines also get an exclamation mark."""
    monkeypatch.setattr(translate, "load", lambda options: FunctionRuntime(shout))
    monkeypatch.setattr(
        translate, "make_sentence_translator", lambda _: word_for_word(str.upper)
    )


@pytest.fixture
def run(tmp_path):
    """Function that translates a file of a name; returns what is written."""

    def run(name, content, *options, output="out"):
        (tmp_path / name).write_bytes(content)
        paths = [f"--input={tmp_path / name}", f"--output={tmp_path / output}"]
        translate.main(["--export-dir=x", *paths, *options])
        return (tmp_path / output).read_bytes()

    return run


@pytest.mark.parametrize("suffix", FORMAT_OF_SUFFIX)
def test_the_suffix_chooses_the_format_of_the_service(run, suffix):
    content, format = CONTENTS[suffix], FORMAT_OF_SUFFIX[suffix]

    found = run(f"A{suffix.upper()}", content)

    expected = run("unknown", content, f"--format={format}")
    assert found != content
    if suffix == ".txt":  # Its lines may be a side of a corpus.
        assert found != expected
        expected = run("unknown", content)
        assert expected == b"".join(b"%b!\n" % x.upper() for x in content.splitlines())
    assert run(f"a{suffix}.gz", gzip.compress(content)) == expected
    if format != "docx":
        assert run(f"b{suffix}", content, "--format=lines") == run("b", content)
    assert found == expected


def test_files_of_a_folder_have_their_formats(run, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    for suffix in (".md", ".txt", ".docx", ".en"):
        (tmp_path / "in" / f"a{suffix}").write_bytes(b"one. Two.\n")
    paths = [f"--{name}put={tmp_path / name}" for name in ("in", "out")]

    translate.main(["--export-dir=x", *paths])

    found = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    lines = b"ONE. TWO.!\n"
    assert found == {"a.md": b"ONE. TWO.\n", "a.txt": lines, "a.en": lines}
    line = f"left out: {tmp_path / 'in' / 'a.docx'}: a .docx file must be a zip archive"
    assert line in capsys.readouterr().err


def make_zip():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "a text")
    return file.getvalue()


NO_TEXT = {
    "zip": make_zip(),
    "png": word_documents.PICTURE,
    "utf-16": "a text".encode("utf-16"),
    "utf-16 without a mark": "a text".encode("utf-16-le"),
    "NUL": b"a\0b",
    "latin-1": "un café".encode("latin-1"),
    "xz": lzma.compress(b"a text"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", NO_TEXT)
@pytest.mark.parametrize("name", ["a.en", "a.txt", "a.html", "a.srt"])
def test_what_is_no_text_is_refused(run, tmp_path, capsys, name, kind, packed):
    content = NO_TEXT[kind]
    if kind == "utf-16" and name in ("a.html", "a.srt"):
        assert run(name, content).startswith(content[:2])
        return

    with pytest.raises(SystemExit) as ended:
        run(name, gzip.compress(content) if packed else content)

    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert str(tmp_path / name) in line
    of_document = kind == "NUL" and name in ("a.html", "a.srt")
    assert ("NUL characters" if of_document else "must be") in line
    assert {path.name for path in tmp_path.iterdir()} == {name}


def test_standard_input_that_is_no_text_is_refused(monkeypatch, refused):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\0")))

    line = refused(translate, "--export-dir=x")

    assert "standard input, line 2, byte 0x00 at column 2" in line


@pytest.mark.parametrize(
    ("name", "options", "output", "message"),
    [
        ("a.docx", [], "b.txt", "a suffix of --input's format, docx"),
        ("a.html", [], "b.md", "a suffix of --input's format, html"),
        ("a.en", [], "b.html", "a suffix of --input's format, lines"),
        ("a.en", ["--format=text"], "b.docx", "a suffix of --input's format, text"),
        ("a.html", ["--sample"], "b", "--sample must be left out with --format html"),
        (".", ["--sample"], "b", "--sample must be left out with a folder"),
    ],
)
def test_refuses_what_contradicts_the_format(
    tmp_path, refused, name, options, output, message
):
    (tmp_path / name).touch()
    paths = [f"--input={tmp_path / name}", f"--output={tmp_path / output}"]

    assert message in refused(translate, "--export-dir=x", *paths, *options)


def test_a_word_document_is_not_written_to_a_terminal(tmp_path, refused, monkeypatch):
    path = tmp_path / "a.docx"
    path.touch()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    line = refused(translate, "--export-dir=x", f"--input={path}")

    assert "a Word document needs --output. Received: a terminal" in line


@pytest.mark.parametrize(
    ("name", "options", "output"),
    [
        ("a.en", [], "b.txt"),
        ("a.txt", [], "b.de"),
        ("a.txt", ["--format=markdown"], "b.txt"),
        ("a.htm", [], "b.html"),
        ("a.html", ["--format=lines"], "b.html"),
        ("a", ["--format=html"], "b.htm"),
    ],
)
def test_accepts_outputs_of_the_same_format(run, name, options, output):
    assert run(name, b"A cat", *options, output=output)


@pytest.mark.parametrize("name", ["a.en", "a.docx.bak", ".docx", "docx"])
def test_other_names_have_no_format(tmp_path, name):
    assert find_format(tmp_path / name) is None
