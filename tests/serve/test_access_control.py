"""Tests of API keys and rate limits over HTTP."""

import hmac
import types

import fastapi
import limits
import pytest

from command_line.errors import UserError
from serve.access_control import AccessControl, find_address, find_name, read_keys
from serve.options import HttpOptions
from serve.schemas import FileFields, TranslateFields, UploadedFile
from tests.helpers import service_client, word_documents
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.service_client import ReversingModel

PAIR = {"source": "en", "target": "es"}
MODELS = {("en", "es"): FunctionRuntime(ReversingModel())}


def request_from(host):
    return types.SimpleNamespace(
        client=(host, 5000), url=types.SimpleNamespace(path="/translate")
    )


def test_a_client_waits_as_long_as_it_is_told():
    http = HttpOptions(port=0)
    rates = tuple(limits.parse_many("5/hour; 100/day"))
    with service_client.serve(MODELS, http, rate_limit=rates) as service:
        answers = [service.post("/translate", q="ab", **PAIR) for _ in range(3)]
        batch = service.post("/translate", q=["a"] * 3, **PAIR)
        small = service.post("/translate", q=["a"] * 2, **PAIR)
        last = service.post_form("/detect", q="a")
        unread = service.post_body("/translate", b"[", "application/json")
        free = [service.get(path) for path in ("/", "/languages", "/health")]

    assert [answer.status for answer in answers] == [200] * 3
    assert (batch.status, small.status, last.status) == (429, 200, 429)
    assert unread.json() == last.json() == {"error": "Slowdown: 5 per 1 hour"}
    assert 3500 < int(last.headers["retry-after"]) <= 3600
    assert [answer.status for answer in free] == [200] * 3


@pytest.mark.parametrize(
    ("q", "cost"), [("a" * 999, 1), ("a" * 1000, 2), (["a" * 2500, "b"], 4)]
)
def test_long_texts_cost_more(q, cost):
    assert TranslateFields(q=q, **PAIR).cost == cost


def test_files_cost_by_what_they_hold():
    word = word_documents.wrap("<w:a/>" * 10_000)
    files = UploadedFile("a.txt", b"a" * 2500), UploadedFile("a.DOCX", word)

    text, word = (FileFields(file=file, **PAIR).cost for file in files)

    assert text == 3
    assert word == 1 + 60_000 // 20_000


def test_a_request_of_more_than_the_limit_passes_alone():
    access = AccessControl({}, limits.parse_many("2/hour"))

    access.admit(request_from("10.0.0.1"), "", 50)

    with pytest.raises(fastapi.HTTPException, match="429"):
        access.admit(request_from("10.0.0.1"), "", 1)
    access.admit(request_from("10.0.0.2"), "", 1)


def test_keys_have_rates_of_their_own(tmp_path, capsys):
    (tmp_path / "keys").write_text("ann: key-of-ann\nkey-of-bob")
    keys = read_keys(tmp_path / "keys")
    access = AccessControl(keys, limits.parse_many("1/hour"))

    access.admit(request_from("10.0.0.1"), "key-of-ann", 1)
    access.admit(request_from("10.0.0.1"), "key-of-bob", 1)
    statuses = []
    for host, key in (
        ("10.0.0.2", "key-of-ann"),
        ("10.0.0.1", "guessed"),
        ("10.0.0.1", "guessed-again"),
    ):
        guess = request_from(host)
        with pytest.raises(fastapi.HTTPException) as refused:
            access.admit(guess, key, 1)
        statuses.append(refused.value.status_code)

    # Keys cannot be guessed faster than the rate of an address.
    assert statuses == [429, 403, 429]
    assert capsys.readouterr().err == (
        "/translate: refused API key 'gues'… from 10.0.0.1\n"
    )


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("a socket", "a socket"),
    ],
)
def test_an_address_of_ipv6_is_its_network(host, address):
    assert find_address((host, 5000)) == address


def write(folder, content):
    path = folder / "keys"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_lines_are_keys_with_names_or_without(tmp_path):
    path = write(tmp_path, "# Ours\none\n\nann: two \r\nb@c.d:\tschlüssel\na:b")

    keys = read_keys(path)

    found = [find_name(keys, key) for key in ("one", "two", "schlüssel", "a:b")]
    assert found == ["line 2", "ann", "b@c.d", "line 6"]
    for key in ("", "on", "one ", "One", "one\n", "ann", "ann: two", "#"):
        assert find_name(keys, key) is None


def test_each_key_is_compared_in_constant_time(tmp_path, monkeypatch):
    compared = []

    def compare(given, each):
        compared.append(each)
        return given == each

    monkeypatch.setattr(hmac, "compare_digest", compare)

    keys = read_keys(write(tmp_path, "a\nb\nc"))
    assert find_name(keys, "a") == "line 1"
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


def test_a_key_that_is_named_as_an_address_is_another_client():
    keys = {"10.0.0.1": b"secret"}
    access = AccessControl(keys, limits.parse_many("1/hour"))
    access.admit(request_from("10.0.0.2"), "secret", 1)

    with pytest.raises(fastapi.HTTPException, match="403"):  # And not 429.
        access.admit(request_from("10.0.0.1"), "guessed", 1)
