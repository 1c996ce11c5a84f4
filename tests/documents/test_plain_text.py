"""Tests of `plain_text_translation` and of `translate --documents`."""

import codecs
import gzip
import io
import itertools
import sys

import pytest
import tensorflow as tf

from documents import plain_text as plain_text_translation
from documents.plain_text import split_at_line_ends
from export.model.sentence_splitting import split_text
from tests.helpers.fake_models import FunctionRuntime, make_outputs
from translate import __main__ as translate

TEXT = b"One. Two.\r\n\n- Three\n\n  four"


@pytest.fixture
def spy(monkeypatch):
    """Has all texts translated into capitals; returns them."""
    seen = []

    def shout(texts):
        seen.extend(texts)
        return make_outputs([text.upper() for text in texts], limit=100)

    runtime = FunctionRuntime(shout, ["translate_document"])
    monkeypatch.setattr(translate, "load", lambda options: runtime)
    return seen


DOCUMENTS = ["--export-dir=x", "--documents"]


def test_a_text_is_one_text(spy, translate_file):
    text = codecs.BOM_UTF8 + TEXT

    assert translate_file(text, *DOCUMENTS) == codecs.BOM_UTF8 + TEXT.upper()
    assert spy == [TEXT]


def test_so_is_what_is_piped_through(spy, monkeypatch, capsysbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))

    translate.main(DOCUMENTS)

    assert capsysbinary.readouterr().out == TEXT.upper()


def test_all_files_of_a_folder_are_translated(spy, tmp_path, capsys):
    source = tmp_path / "in"
    (source / "deep" / ".git").mkdir(parents=True)
    (source / "deep" / ".git" / "config").write_bytes(b"x")
    (source / "deep" / "a.md.gz").write_bytes(gzip.compress(TEXT))
    (source / "b.txt").write_bytes(b"")
    (source / "c.png").write_bytes(b"\x89PNG")
    (source / "late.txt").write_bytes(b"One.\n" * 2**14 + b"\x89")

    translate.main([*DOCUMENTS, f"--input={source}", f"--output={tmp_path / 'out'}"])

    written = {
        str(path.relative_to(tmp_path / "out")): path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert written == {"deep/a.md": TEXT.upper(), "b.txt": b""}
    assert f"left out: {source / 'c.png'}: text must be UTF-8. Received: " in (
        capsys.readouterr().err
    )


def test_pieces_are_whole_lines_and_whole_fences(monkeypatch):
    monkeypatch.setattr(plain_text_translation, "PART_BYTES", 6)
    lines = [b"one\n", b"two\n", b" ```x\n", b"a\n", b"b\n", b"```\n", b"end"]

    pieces = list(split_at_line_ends(lines))

    fence = b" ```x\na\nb\n```\n"
    assert join(pieces) == [(b"one\ntwo\n", False), (fence, True), (b"end", False)]
    assert list(split_at_line_ends([])) == []
    # It does not end by a fence that opens one; an indented one is code, too.
    lines = [b"    ```\r\n", b"``` x\r\n", b"\t```\r\n", b"a\n", b"~~~"]
    assert join(split_at_line_ends(lines)) == [
        (b"".join(lines[:3]), True),
        (b"a\n", False),
        (b"~~~", True),
    ]


def join(pieces):
    """Joins neighbours of one kind."""
    groups = itertools.groupby(pieces, key=lambda piece: piece[1])
    return [(b"".join(p for p, _ in group), kind) for kind, group in groups]


def test_a_long_line_is_cut_and_code_is_not_translated(
    spy, monkeypatch, translate_file
):
    monkeypatch.setattr(plain_text_translation, "LINE_BYTES", 10)
    long = b"one two three\rfour " + "éé".encode() * 9 + b"\n"
    code = b"```\n" + b"x = 1 " * 9 + b"\n"

    assert translate_file(long + code, *DOCUMENTS) == long.upper() + code
    assert spy[:3] == [b"one two ", b"three\r", b"four "]
    assert max(map(len, spy)) <= 10
    assert b"".join(spy) == long


@pytest.mark.parametrize("character", ["é", "中", "🐈"])
@pytest.mark.parametrize("size", [8, 9, 10, 11])
def test_no_character_is_cut(monkeypatch, character, size):
    monkeypatch.setattr(plain_text_translation, "LINE_BYTES", size)
    text = character * 20

    parts = list(plain_text_translation.split_long_line(text.encode()))

    assert "".join(part.decode() for part in parts) == text
    assert max(map(len, parts)) <= size


def test_a_graph_keeps_the_same_code():
    text = b"One.\n    ```\r\nTwo.\r\n```\r\nThree."
    parts, is_sentence = split_text(tf.constant([text]), "en")
    found = tf.ragged.boolean_mask(parts, is_sentence).to_list()
    assert [[p.strip() for p in row] for row in found] == [[b"One.", b"Three."]]


def test_two_files_are_not_written_into_one(spy, tmp_path, refused):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes(b"a")
    (tmp_path / "in" / "a.txt.gz").write_bytes(gzip.compress(b"b"))

    files = [f"--{name}put={tmp_path / name}" for name in ("in", "out")]
    line = refused(translate, "--export-dir=x", "--documents", *files)

    assert line.endswith("a.txt.gz")
    assert not spy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input={}"], "--output must be a folder where --input is one"),
        (["--input={}", "--output={}/x"], "--output must be outside of"),
        (["--input={}/png"], "text must be UTF-8. Received: byte 0x89"),
    ],
)
def test_refuses_what_it_cannot_do(spy, tmp_path, refused, arguments, message):
    (tmp_path / "png").write_bytes(b"\x89PNG")

    arguments = [argument.format(tmp_path) for argument in arguments]
    line = refused(translate, "--export-dir=x", "--documents", *arguments)

    assert line.startswith(f"error: {message}")


def test_an_export_translates_a_folder(export_dir, servable, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes(TEXT)
    files = [f"--{name}put={tmp_path / name}" for name in ("in", "out")]

    translate.main([f"--export-dir={export_dir}", "--documents", *files])

    found = servable.predict("translate_document", {"text": [TEXT]})
    written = (tmp_path / "out" / "a.txt").read_bytes()
    assert written == found["translation"][0]
