"""Tests of plain text in `documents.formats`, and of `translate --format text`."""

import codecs
import gzip
import io
import sys

import pytest

from tests.helpers.fake_models import FunctionRuntime, make_outputs
from translate import __main__ as translate

TEXT = b"One. Two.\r\n\n- Three\n\n  four"
TRANSLATED = b"{One.} {Two.}\r\n\n- {Three}\n\n  {four}"
OPTIONS = ["--export-dir=x", "--format=text"]


@pytest.fixture
def spy(monkeypatch):
    """Has all sentences put in braces; returns them."""
    seen = []

    def bracket(texts):
        seen.extend(texts)
        return make_outputs([b"{%b}" % text for text in texts])

    monkeypatch.setattr(translate, "load", lambda options: FunctionRuntime(bracket))
    return seen


def test_sentences_are_translated_and_the_rest_stays(spy, translate_file):
    text = codecs.BOM_UTF8 + TEXT

    assert translate_file(text, *OPTIONS) == codecs.BOM_UTF8 + TRANSLATED
    assert sorted(spy) == [b"One.", b"Three", b"Two.", b"four"]


def test_so_is_what_is_piped_through(spy, monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))

    translate.main(OPTIONS)

    assert capsysbinary.readouterr().out == TRANSLATED


def test_all_files_of_a_folder_are_translated(spy, tmp_path, capsys):
    source = tmp_path / "in"
    (source / "deep" / ".git").mkdir(parents=True)
    (source / "deep" / ".git" / "config").write_bytes(b"x")
    (source / "deep" / "a.md.gz").write_bytes(gzip.compress(TEXT))
    (source / "b.txt").write_bytes(b"")
    (source / "c.png").write_bytes(b"\x89PNG")

    translate.main([*OPTIONS, f"--input={source}", f"--output={tmp_path / 'out'}"])

    written = {
        str(path.relative_to(tmp_path / "out")): path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert written == {"deep/a.md": TRANSLATED, "b.txt": b""}
    assert f"left out: {source / 'c.png'}: the document must be in utf-8" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("fence", [b"```", b"~~~"])
def test_code_between_fences_stays(spy, translate_file, fence):
    code = b"    %s\r\nTwo.\r\n%s\r\n" % (fence, fence)
    title = b"%s\n~~~~\n"  # Those of reStructuredText are no fences.

    found = translate_file(title % b"One." + code + b"Three.", *OPTIONS)

    assert found == title % b"{One.}" + code + b"{Three.}"


def test_two_files_are_not_written_into_one(spy, tmp_path, refused):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes(b"a")
    (tmp_path / "in" / "a.txt.gz").write_bytes(gzip.compress(b"b"))

    files = [f"--{name}put={tmp_path / name}" for name in ("in", "out")]
    line = refused(translate, *OPTIONS, *files)

    assert line.endswith("a.txt.gz")
    assert not spy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input={}"], "--output must be a folder where --input is one"),
        (["--input={}", "--output={}/x"], "--output must be outside of"),
        (["--input={}/png"], "{}/png: the document must be in utf-8. Received: 'utf"),
    ],
)
def test_refuses_what_it_cannot_do(spy, tmp_path, refused, arguments, message):
    (tmp_path / "png").write_bytes(b"\x89PNG")

    arguments = [argument.format(tmp_path) for argument in arguments]
    line = refused(translate, *OPTIONS, *arguments)

    assert line.startswith(f"error: {message.format(tmp_path)}")
