"""Any request is answered, and the service answers the next one as before."""

import json
import socket
import urllib.parse

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from documents.formats import FORMAT_OF_SUFFIX
from documents.markup.word_alignment import find_words
from serve.schemas import MULTIPART, URL_ENCODED
from tests.helpers import service_client
from tests.helpers.fake_models import make_outputs
from translate.runtime.runtime import SIGNATURES_OF_FEATURE, Runtime

PAIR = {"source": "en", "target": "es"}
POSTS = ["/translate", "/translate_file", "/detect", "/sentences", "/words"]
OTHERS = ["/", "/suggest", "/languages", "/download_file/a", "/spec", "/livez", "/%ff"]
# With lone surrogates, which `st.text` leaves out.
ODD_TEXTS = ["", "<p>a <b>b</b>", "&#xD800; x", "\0", "auto", "+2AA-\\ud800"]
TEXTS = st.text(st.characters(), max_size=20)
TEXTS |= st.sampled_from(["Two cats. One dog.\n", *ODD_TEXTS])
FILE_NAMES = st.sampled_from([f"a{suffix}" for suffix in FORMAT_OF_SUFFIX]) | TEXTS
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda values: st.lists(values) | st.dictionaries(TEXTS, values),
    max_leaves=4,
)
# Python's codecs that take quadratic time, decode surrogates, or nothing at all.
CHARSETS = ["punycode", "utf-7", "unicode_escape", "undefined", "zlib_codec", "x", ""]


class Echo(Runtime):
    """A model with all features, whose translations are the sentences."""

    signatures = ("serving_default", *sum(SIGNATURES_OF_FEATURE.values(), ()))
    knows_placeholders = False

    def ask(self, signature, inputs):
        return make_outputs(inputs["text"].tolist())

    def align(self, pairs):
        return [np.eye(len(find_words(t)), len(find_words(s))) for s, t in pairs]

    def find_alternatives(self, texts, beam_size):
        return [[text, f"{text}!"] for text in texts]

    def find_words(self, pairs):
        return [{"source": source, "target": target} for source, target in pairs]


@pytest.fixture(scope="module")
def service():
    with service_client.serve({("en", "es"): Echo()}) as service:
        yield service


def encode(text):
    return text.encode("utf-8", "surrogatepass")


def rarely(strategy):
    """Draws from a strategy once in five times, else `None`."""
    return st.integers(0, 4).flatmap(lambda n: st.none() if n else strategy)


@st.composite
def multipart_bodies(draw, pairs):
    parts = []
    for name, value in pairs:
        head = f'Content-Disposition: form-data; name="{name}"'
        file_name = draw(FILE_NAMES if name == "file" else rarely(FILE_NAMES))
        if file_name is not None:
            head += f'; filename="{file_name}"'
        parts.append(b"--b\r\n" + encode(f"{head}\r\n\r\n{value}\r\n"))
    return b"".join(parts) + b"--b--\r\n"


@st.composite
def contents(draw):
    """Draws a content type, a body and a query; most of them fit each other."""
    fields = {
        **PAIR,
        "q": draw(TEXTS | st.lists(TEXTS, max_size=3)),
        "translations": draw(TEXTS | st.lists(TEXTS, max_size=3)),
        "file": draw(TEXTS),
        "format": draw(st.sampled_from(["text", "html"])),
        "glossary": draw(st.sampled_from(["", "Two\t&amp;", "Two", [["cats", ""]]])),
    }
    for name in draw(rarely(st.lists(st.sampled_from([*fields, "a"])))) or ():
        fields[name] = draw(JSON)
    pairs = [
        (name, value)
        for name, values in fields.items()
        for value in (values if isinstance(values, list) else [values])
    ]
    encoded = urllib.parse.urlencode(pairs, errors="surrogatepass")
    kind, body, query = draw(
        st.sampled_from(
            [
                ("application/json", json.dumps(fields).encode(), ""),
                (URL_ENCODED, encoded.encode(), ""),
                ("", b"", encoded),
            ]
        )
        | st.tuples(
            st.just(f"{MULTIPART}; boundary=b"), multipart_bodies(pairs), st.just("")
        )
    )
    kind += draw(
        st.sampled_from(["", "; charset=UTF-8"])
        | st.sampled_from(CHARSETS).map("; charset={}".format)
    )
    if garbage := draw(rarely(st.binary())):
        place = draw(st.integers(0, len(body)))
        body = body[:place] + garbage + body[place + len(garbage) :]
    return encode(kind), body, query


def send(service, method, target, kind, body, is_chunked):
    """Sends a request; returns the status and the body of the response."""
    length = f"Content-Length: {len(body)}"
    if is_chunked:
        length = "Transfer-Encoding: chunked"
        body = b"%x\r\n%b\r\n" % (len(body), body) * bool(body) + b"0\r\n\r\n"
    head = f"{method} {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{length}\r\n"
    head = head.encode() + b"Content-Type: %b\r\n\r\n" % kind
    with socket.create_connection(("127.0.0.1", service.port), 20) as client:
        client.sendall(head + body)
        response = b"".join(iter(lambda: client.recv(65536), b""))
    head, _, body = response.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    method=rarely(st.sampled_from(["GET", "HEAD", "PUT", "OPTIONS", "x"])),
    path=st.sampled_from(POSTS) | rarely(st.sampled_from(OTHERS)),
    content=contents() | rarely(st.tuples(st.binary(), st.binary(), st.just("%ff"))),
    is_chunked=st.booleans(),
)
def test_any_request_is_answered(service, method, path, content, is_chunked):
    kind, body, query = content or (b"", b"", "")
    kind = kind.translate(None, b"\0\r\n")  # They would end the header.
    target = f"{path or '/translate'}?{query}"

    status, answer = send(service, method or "POST", target, kind, body, is_chunked)
    next_one = service.post("/translate", q="Two cats.", **PAIR)

    assert 200 <= status < 500, answer
    if answer.startswith(b'{"error"'):
        assert "\n" not in json.loads(answer)["error"]
    assert next_one.json() == {"translatedText": "Two cats."}
