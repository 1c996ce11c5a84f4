"""Tests of `serve.api_keys`."""

import hmac

import pytest

from command_line.errors import UserError
from serve.api_keys import ApiKeys
from serve.options import HttpOptions


def write(folder, content):
    path = folder / "keys"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_lines_are_keys_with_names_or_without(tmp_path):
    path = write(tmp_path, "# Ours\none\n\nann: two \r\nb@c.d:\tschlüssel\na:b")

    keys = ApiKeys(path)

    found = [keys.find_name(key) for key in ("one", "two", "schlüssel", "a:b")]
    assert found == ["line 2", "ann", "b@c.d", "line 6"]
    for key in ("", "on", "one ", "One", "one\n", "ann", "ann: two", "#"):
        assert keys.find_name(key) is None


def test_each_key_is_compared_in_constant_time(tmp_path, monkeypatch):
    compared = []

    def compare(given, each):
        compared.append(each)
        return given == each

    monkeypatch.setattr(hmac, "compare_digest", compare)

    assert ApiKeys(write(tmp_path, "a\nb\nc")).find_name("a") == "line 1"
    assert compared == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must hold keys, one a line"),
        (b"\xff\xfe", "must hold keys, one a line"),
        (b"a\nsecret words here", "whose line 2 is neither"),
        (b"b\na: b", "whose line 2 repeats one"),
    ],
)
def test_a_file_with_other_lines_is_refused_at_once(tmp_path, content, message):
    path = write(tmp_path, content)

    with pytest.raises(UserError, match=r"--api-keys must hold") as refused:
        HttpOptions(api_keys=path)

    assert message in str(refused.value)
    assert "secret" not in str(refused.value)


def test_keys_stay_if_the_file_is_damaged(tmp_path):
    keys = ApiKeys(write(tmp_path, "old"))
    write(tmp_path, "new")
    keys.reload()
    assert keys.find_name("new")
    assert not keys.find_name("old")

    (tmp_path / "keys").unlink()
    with pytest.raises(UserError):
        keys.reload()

    assert keys.find_name("new")
