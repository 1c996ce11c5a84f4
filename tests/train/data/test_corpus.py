import gzip
import os
import pathlib
import tempfile

import pytest
from hypothesis import given, settings, strategies as st

from command_line import text_files
from command_line.errors import UserError
from train.data import encoded_corpus
from train.data.corpus import FilePairs, Pairs
from train.data.encoded_corpus import DigestCachedCorpus


@pytest.fixture
def files(tmp_path):
    def write(source, target):
        paths = tmp_path / "source", tmp_path / "target"
        for path, content in zip(paths, (source, target), strict=True):
            path.write_bytes(content)
        return paths

    return write


def test_a_byte_order_mark_is_no_text(files):
    source = "\ufeffa\n\ufeffb\n".encode()
    marked = FilePairs(*files(gzip.compress(source), source))

    assert list(marked) == [("a", "a"), ("\ufeffb", "\ufeffb")]
    assert marked.digest() == FilePairs(*files(source[3:], source)).digest()


@pytest.mark.parametrize("packed", [False, True])
def test_reads_a_pipe_from_its_beginning(tmp_path, packed):
    content = gzip.compress(b"a\nb\n") if packed else b"a\nb\n"
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)

    lines = list(text_files.read_lines(pathlib.Path(f"/dev/fd/{reader}")))
    os.close(reader)

    assert lines == ["a", "b"]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"", b"a\n", "may not be empty.*source"),
        (b"\xef\xbb\xbf", b"a\n", "may not be empty.*source"),
        (b"a\nb\n", b"a\n", "2 lines in .*source, 1 lines in .*target"),
        (b"a\nb\xffc\n", b"a\nb\n", "source, line 2, byte 0xff at column 2"),
        (b"a\nb\0c\n", b"a\nb\n", "source, line 2, byte 0x00 at column 2"),
        (gzip.compress(b"abc" * 99, mtime=0)[:20], b"a\n", "not a whole gzip.*source"),
    ],
)
def test_refuses_files_that_are_no_corpus(files, source, target, message):
    with pytest.raises(UserError, match=message):
        list(FilePairs(*files(source, target)))


BROKEN = b"a\nb\xff\nc\nd\ne\xc3", b"a\nb\nc\n\xe9d\ne"


def test_all_lines_that_are_not_utf_8_are_listed(files):
    with pytest.raises(UserError, match="`iconv -c .* Received") as raised:
        len(FilePairs(*files(*BROKEN)))

    found = str(raised.value)
    assert "source, line 2, byte 0xff at column 2; line 5, byte 0xc3" in found
    assert "target, line 4, byte 0xe9 at column 1" in found
    broken = b"\xff\n" * 30
    with pytest.raises(UserError, match="line 20, .*1; and 10 more lines$"):
        len(FilePairs(*files(broken, b"a\n" * 30)))


def test_refuses_a_pipe_as_a_corpus(tmp_path):
    """It would be empty when it is read again."""
    path = tmp_path / "pipe"
    os.mkfifo(path)

    with pytest.raises(UserError, match="read several times. .*pipe, a pipe"):
        len(DigestCachedCorpus(FilePairs(path, path), [path], tmp_path))


def test_refuses_a_file_that_is_not_there(tmp_path):
    path = tmp_path / "missing"
    with pytest.raises(UserError, match="no such file: .*missing"):
        len(FilePairs(path, path))


TEXTS = st.text("ab\r\n\f\u2028", min_size=1, max_size=12)


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.booleans())
def test_only_a_newline_ends_a_line(text, packed):
    content = text.encode()
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "text")
        path.write_bytes(gzip.compress(content) if packed else content)
        pairs = FilePairs(path, path)

        assert list(pairs) == list(zip(lines, lines, strict=True))
        assert len(pairs) == len(lines)
        assert pairs.digest() == Pairs(lines, lines).digest()


def test_the_digest_sees_text_and_side(files):
    digests = {
        FilePairs(*files(source, target)).digest()
        for source, target in ((b"a\nb", b"c\nd"), (b"c\nd", b"a\nb"))
    }

    assert len(digests) == 2


def test_a_corpus_is_scanned_again_only_when_its_files_change(
    files, tmp_path, monkeypatch
):
    paths = files(b"a\nb\n", b"c\nd\n")
    reads = []
    iterate = FilePairs.__iter__
    monkeypatch.setattr(
        FilePairs, "__iter__", lambda pairs: reads.append(pairs) or iterate(pairs)
    )

    def scan():
        reads.clear()
        pairs = DigestCachedCorpus(FilePairs(*paths), list(paths), tmp_path / "cache")
        return len(pairs), pairs.digest(), len(reads)

    first = FilePairs(*paths).digest()
    assert scan() == (2, first, 1)
    assert scan() == (2, first, 0)
    files(b"a\nx\n", b"c\nd\n")
    os.utime(paths[0], ns=(0, 1))
    digest = FilePairs(*paths).digest()
    assert scan() == (2, digest, 1)
    assert digest != first
    (scans,) = {path.parent for path in tmp_path.rglob("*.scan")}
    for path in scans.iterdir():
        path.write_text("[")
    assert scan() == (2, digest, 1)
    # Another version may make other text of the same files.
    monkeypatch.setattr(encoded_corpus, "FORMAT", encoded_corpus.FORMAT + 1)
    assert scan() == (2, digest, 1)
