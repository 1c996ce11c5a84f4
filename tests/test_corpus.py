"""Tests of `train.corpus`."""

import gzip

import pytest

from keras_transformer.errors import UserError
from train.corpus import demo_pairs
from train.corpus import read_pairs


@pytest.fixture
def files(tmp_path):
    """Returns a function that writes two files and gives their paths."""

    def write(source, target):
        paths = tmp_path / "source", tmp_path / "target"
        for path, content in zip(paths, (source, target), strict=True):
            path.write_bytes(content)
        return paths

    return write


def test_reads_pairs_line_by_line(files):
    pairs = read_pairs(*files("a b\nCafé\n".encode(), b"c\n\n"))

    assert pairs.sources == ["a b", "Café"]
    assert pairs.targets == ["c", ""]


def test_reads_gzip_whatever_the_name_says(files):
    pairs = read_pairs(*files(gzip.compress(b"a\nb\n"), b"c\nd\n"))

    assert pairs.sources == ["a", "b"]


def test_only_a_newline_ends_a_line(files):
    source = "one\u2028still one\x0cstill one\r\ntwo"
    pairs = read_pairs(*files(source.encode(), b"c\nd"))

    assert pairs.sources == ["one\u2028still one\x0cstill one", "two"]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"", b"a\n", "may not be empty.*source"),
        (b"a\nb\n", b"a\n", "2 lines in .*source, 1 lines in .*target"),
        (b"a\nb\xffc\n", b"a\nb\n", "source, line 2, byte 0xff at column 2"),
        (gzip.compress(b"abc" * 99)[:20], b"a\n", "not a whole gzip.*source"),
    ],
)
def test_refuses_files_that_are_no_corpus(files, source, target, message):
    with pytest.raises(UserError, match=message):
        read_pairs(*files(source, target))


def test_refuses_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="no such file: .*missing"):
        read_pairs(tmp_path / "missing", tmp_path / "missing")


def test_the_digest_sees_text_and_side(files):
    digests = {
        read_pairs(*files(source, target)).digest()
        for source, target in ((b"a\nb", b"c\nd"), (b"c\nd", b"a\nb"))
    }

    assert len(digests) == 2


def test_the_demo_corpus_comes_as_pairs():
    assert len(demo_pairs("test")) == 500
