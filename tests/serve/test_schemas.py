"""Tests of how the fields of a request are read."""

import codecs
import urllib.parse

import fastapi
import pydantic
import pytest
import urllib3

from serve.schemas import (
    MAX_FIELDS,
    URL_ENCODED,
    DetectFields,
    FileFields,
    RequestFields,
    TextFields,
    TranslateFields,
    WordsFields,
    check_fields,
)

PAIR = [("source", "en"), ("target", "es")]
FILE = ("a.txt", b"content")


def write_multipart(pairs):
    body, kind = urllib3.encode_multipart_formdata(pairs, boundary="b")
    return kind, body, b""


def write_form(pairs):
    return URL_ENCODED, urllib.parse.urlencode(pairs).encode(), b""


def write_query(pairs):
    return "", b"", urllib.parse.urlencode(pairs).encode()


WRITERS = [write_multipart, write_form, write_query]


def refuse(schema, kind, body, query=b""):
    """Returns the status and the message of a refused request."""
    with pytest.raises(fastapi.HTTPException) as refused:
        check_fields(schema, kind, body, query)
    return refused.value.status_code, refused.value.detail


@pytest.mark.parametrize("write", WRITERS)
def test_fields_of_one_name_are_a_list(write):
    one, two = [("q", "é"), *PAIR], [("q", "é"), *PAIR, ("q", "b\r\nc")]
    words = [("translations", "x"), *one]

    assert check_fields(TranslateFields, *write(one)).q == "é"
    assert check_fields(TranslateFields, *write(two)).q == ["é", "b\nc"]
    assert check_fields(WordsFields, *write(words)).translations == ["x"]
    for pairs, schema in (
        (two, TextFields),
        (two, DetectFields),
        ([*one, ("source", "de")], TranslateFields),
        ([*one, ("format", "text"), ("format", "text")], TranslateFields),
        ([*one, ("alternatives", "1"), ("alternatives", "1")], TranslateFields),
        ([("api_key", "a"), ("api_key", "b")], RequestFields),
    ):
        status, _ = refuse(schema, *write(pairs))
        assert status == 400, pairs


@pytest.mark.parametrize(
    ("schema", "pairs"),
    [
        (TranslateFields, [("q", FILE)]),
        (TranslateFields, [("q", FILE), ("q", "a")]),
        (DetectFields, [("q", FILE)]),
        (WordsFields, [("q", FILE), ("translations", "a")]),
        (WordsFields, [("q", "a"), ("translations", FILE)]),
        (TextFields, [("q", "a"), ("api_key", FILE)]),
        (FileFields, [("file", "text")]),
        (FileFields, [("file", FILE), ("file", FILE)]),
    ],
)
def test_a_file_is_no_text_and_a_text_no_file(schema, pairs):
    status, message = refuse(schema, *write_multipart([*pairs, *PAIR]))

    assert status == 400
    assert message.startswith("Invalid request: ")
    assert "\n" not in message


def test_of_a_list_one_wrong_item_is_reported():
    with pytest.raises(pydantic.ValidationError) as refused:
        TranslateFields(q=[1] * 1000, **dict(PAIR))

    assert refused.value.error_count() == 2  # It is no text, and no list of texts.


@pytest.mark.parametrize("charset", ["utf-7", "punycode", "undefined", "latin-1", ""])
@pytest.mark.parametrize("write", [write_multipart, write_form])
def test_forms_are_in_utf_8(write, charset):
    kind, body, query = write([("q", "a"), *PAIR])

    for name in ("utf-8", '"UTF-8"', "utf8"):
        check_fields(TranslateFields, f"{kind}; charset={name}", body, query)
    status, message = refuse(TranslateFields, f"{kind}; charset={charset}", body)
    assert status == 415
    assert message.startswith("Invalid request: the charset must be utf-8")


# The last two are U+D800.
@pytest.mark.parametrize("wrong", [b"\xff", b"\xed\xa0\x80", b"%ED%A0%80"])
@pytest.mark.parametrize("write", WRITERS)
def test_text_that_is_not_utf_8_is_refused(write, wrong):
    if write == write_multipart:
        wrong = urllib.parse.unquote_to_bytes(wrong)  # It has no escapes.
    pairs = [("q", "~a"), ("source", "~b"), ("api_key", "~c"), ("~d", "")]
    if write == write_multipart:
        pairs.append(("file", ("~e", b"")))

    kind, *contents = write(pairs)
    check_fields(RequestFields, kind, *contents)
    for mark in "abcde"[: len(pairs)]:
        broken = [each.replace(b"~" + mark.encode(), wrong) for each in contents]
        status, message = refuse(RequestFields, kind, *broken)
        assert status == 400
        assert "'utf-8' codec can't decode" in message


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[", b'["a"]', b"\xff", b'{"q": "\\ud800"}'),
        *(b'{"q": "\xed\xa0\x80"}', b"[" * 9000),
    ],
)
def test_what_is_no_json_is_refused(body):
    refused = refuse(RequestFields, "application/json", body)

    assert refused == (400, "Invalid JSON format")


def test_json_may_begin_with_a_byte_order_mark():
    body = codecs.BOM_UTF8 + b'{"api_key": "a"}'

    assert check_fields(RequestFields, "application/json", body, b"").api_key == "a"


@pytest.mark.parametrize("write", WRITERS)
def test_a_form_has_a_limited_number_of_fields(write):
    fits = [("a", "")] * MAX_FIELDS

    check_fields(RequestFields, *write(fits))
    status, _ = refuse(RequestFields, *write([*fits, ("a", "")]))
    assert status == 400


@pytest.mark.parametrize("body", [b"", b"--b", b"--c\r\n\r\n--c--", b"--b\r\n\r\n"])
@pytest.mark.parametrize("boundary", ["; boundary=b", "; boundary=", ""])
def test_what_is_no_form_is_refused(body, boundary):
    status, _ = refuse(TextFields, f"multipart/form-data{boundary}", body)

    assert status == 400
