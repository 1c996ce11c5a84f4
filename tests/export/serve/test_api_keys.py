"""Tests of `export.serve.api_keys`."""

import hmac

import pytest

from command_line.errors import UserError
from export.serve import api_keys
from export.serve.options import HttpOptions


def test_keys_are_lines_and_nothing_else_is_one(tmp_path):
    (tmp_path / "keys").write_text("one\n\n  two \r\nschlüssel")

    known = api_keys.read_keys(tmp_path / "keys")

    for key in ("one", "two", "schlüssel"):
        assert api_keys.is_known(key, known)
    for key in ("", "on", "one ", "One", "one\n", "oneone", "schl"):
        assert not api_keys.is_known(key, known)


def test_each_key_is_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(given, each):
        compared.append(each)
        return given == each

    monkeypatch.setattr(hmac, "compare_digest", compare)

    assert api_keys.is_known("a", (b"a", b"b", b"c"))
    assert compared == [b"a", b"b", b"c"]


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff\xfe"])
def test_a_file_without_keys_is_refused_at_once(tmp_path, content):
    (tmp_path / "keys").write_bytes(content)

    with pytest.raises(UserError, match=r"--api-keys must hold.*Received"):
        HttpOptions(api_keys=tmp_path / "keys")
