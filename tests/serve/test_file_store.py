"""Tests of `serve.file_store`."""

import types

from serve import file_store
from serve.fair_queue import CLIENT
from serve.file_store import FileStore


def test_a_file_is_found_by_its_key_alone():
    files = FileStore()
    key = files.add("a.txt", b"content")

    assert files.find(key)[:2] == ("a.txt", b"content")
    assert files.find(key[:-1]) is None
    assert files.find("") is None
    assert len(key) > 20


def test_the_oldest_go_where_there_are_too_many_bytes(monkeypatch):
    monkeypatch.setattr(file_store, "MAX_BYTES", 12)
    files = FileStore()
    keys = [files.add("a", bytes(size)) for size in (5, 4, 3, 5)]

    assert [files.find(key) is None for key in keys] == [True, False, False, False]
    # A file that is larger than all may be is kept alone.
    keys.append(files.add("a", bytes(13)))
    assert [files.find(key) is None for key in keys] == [True] * 4 + [False]
    keys.append(files.add("a", b""))
    assert [files.find(key) is None for key in keys] == [True] * 5 + [False]


def test_none_stays_for_long(monkeypatch):
    now = 0
    clock = types.SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(file_store, "time", clock)
    files = FileStore()
    old = files.add("a", b"a")
    now = file_store.SECONDS - 1
    new = files.add("b", b"b")
    assert files.find(old)
    now += 1

    assert files.find(old) is None
    assert files.find(new).content == b"b"


def test_a_client_loses_its_own_files_first(monkeypatch):
    monkeypatch.setattr(file_store, "MAX_FILES", 3)
    files = FileStore()
    token = CLIENT.set("a")
    first = files.add("a", b"")
    CLIENT.set("b")
    keys = [files.add("b", b"") for _ in range(3)]
    CLIENT.reset(token)
    other = files.add("c", b"")

    assert [files.find(key) is None for key in keys] == [True, False, False]
    assert files.find(first) is None  # A client without a file takes the oldest.
    assert files.find(other)
