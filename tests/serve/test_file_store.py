"""Tests of `serve.file_store`."""

import time

import pytest

from serve import file_store
from serve.file_store import FileStore


def test_a_file_is_found_by_its_key_alone():
    files = FileStore()
    key = files.add("a.txt", b"content")

    assert files.find(key).content == b"content"
    assert files.find(key[:-1]) is None
    assert len(key) > 20


def test_the_oldest_go_where_there_are_too_many():
    files = FileStore(max_bytes=12)
    keys = [files.add("a", bytes(4)) for _ in range(3)]

    assert [files.find(key) is None for key in keys] == [True, False, False]
    assert files.find(files.add("a", bytes(11))) is None


def test_none_stays_for_long():
    files = FileStore(seconds=0.01)
    key = files.add("a", b"b")
    time.sleep(0.02)

    assert files.find(key) is None


def test_processes_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(file_store.FOLDER_VARIABLE, str(tmp_path))
    key = FileStore().add("a.txt", b"content\nof two lines")

    assert FileStore().find(key) == ("a.txt", b"content\nof two lines")


@pytest.mark.parametrize("key", ["../secret", "", "a" * 22, "."])
def test_a_key_is_no_path(tmp_path, monkeypatch, key):
    monkeypatch.setenv(file_store.FOLDER_VARIABLE, str(tmp_path / "files"))
    (tmp_path / "files").mkdir()
    (tmp_path / "secret").write_text("secret")

    assert FileStore().find(key) is None
