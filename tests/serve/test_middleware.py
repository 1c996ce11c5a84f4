"""Clients that are slow, silent, greedy or gone cost nothing."""

import contextlib
import json
import socket
import threading

import pytest

from serve import middleware, server
from serve.middleware import TimeoutProtocol
from tests.helpers import service_client
from tests.helpers.fake_models import FunctionRuntime

PAIR = {"source": "en", "target": "es"}
FIELDS = json.dumps({"q": "ab", **PAIR})
WAITING = 'translate_waiting{model="en:es"}'
HEAD = "POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"


@pytest.fixture
def reversing():
    return service_client.ReversingModel()


@contextlib.contextmanager
def connected(service, *parts):
    """Yields a socket that has sent something."""
    with socket.create_connection(("127.0.0.1", service.port), 30) as client:
        for part in parts:
            client.sendall(part.encode())
        yield client


def read_all(client):
    """Returns what comes until the other end hangs up."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(65536):
            received += part
    return received


def request(body):
    return f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}"


@pytest.mark.parametrize("sent", ["", "POST /tra", f"{HEAD}X-Slow: yes\r\n"], ids=len)
def test_who_sends_no_head_is_hung_up_on(reversing, monkeypatch, sent):
    monkeypatch.setattr(middleware, "HEAD_SECONDS", 0.1)
    with service_client.serve_function(reversing) as service:
        with connected(service, sent) as client:
            assert read_all(client) == b""
        # Nor is a second one waited for.
        with connected(service, request(FIELDS), sent) as client:
            assert read_all(client).startswith(b"HTTP/1.1 200")


def test_a_request_that_works_long_is_not_hung_up_on(reversing, monkeypatch):
    checks, check = [], TimeoutProtocol._close_if_silent

    def check_when_asked(protocol, before):
        """Checks the connection, but not before the head has come."""
        if not reversing.batches:
            protocol.loop.call_later(0.01, check_when_asked, protocol, before)
            return
        checks.append(before)
        check(protocol, before)

    monkeypatch.setattr(TimeoutProtocol, "_close_if_silent", check_when_asked)
    monkeypatch.setattr(middleware, "HEAD_SECONDS", 0.02)
    reversing.gate.clear()
    with service_client.serve_function(reversing) as service:
        thread, answers = service_client.in_thread(
            service.post, "/translate", q="ab", **PAIR
        )
        service_client.wait_until(lambda: len(checks) >= 4)
        reversing.gate.set()
        thread.join()

    assert answers[0].json() == {"translatedText": "ba"}


def test_who_sends_no_body_is_told_so(reversing, monkeypatch):
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.1)
    with (
        service_client.serve_function(reversing) as service,
        connected(service, request(FIELDS)[:-1]) as client,
    ):
        answer = read_all(client)

    assert answer.startswith(b"HTTP/1.1 408")
    assert b'{"error": "Invalid request: incomplete after 0.1 seconds"}' in answer


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_not_read(reversing, chunked):
    with service_client.serve_function(reversing, byte_limit=1000) as service:
        body = "Content-Length: 1001\r\n\r\n"
        if chunked:  # And no end.
            body = f"Transfer-Encoding: chunked\r\n\r\n3e9\r\n{'a' * 1001}\r\n"
        with connected(service, HEAD + body) as client:
            answer = read_all(client)
        fits = service.post("/translate", q="a" * 900, **PAIR)

    assert answer.startswith(b"HTTP/1.1 413")
    assert b'{"error": "Invalid request: more than 1000 bytes"}' in answer
    assert fits.status == 200


@pytest.mark.parametrize("path", ["/translate", "/sentences"])
def test_what_a_client_that_left_asked_is_not_translated(reversing, path):
    reversing.gate.clear()
    with service_client.serve_function(reversing) as service:
        thread, answers = service_client.in_thread(
            service.post, "/translate", q="first", **PAIR
        )
        service_client.wait_until(lambda: reversing.batches)
        asked = request(FIELDS.replace("ab", "gone")).replace("/translate", path)
        with connected(service, asked):
            service_client.wait_until(lambda: service.measured(WAITING) == 1)
        service_client.wait_until(lambda: service.measured(WAITING) == 0)
        reversing.gate.set()
        thread.join()
        told = service.get("/metrics").body.decode()

    assert answers[0].status == 200
    assert reversing.batches == [[b"first"]]
    assert f'translate_request_seconds_count{{path="{path}"}}' in told
    assert path == "/sentences" or 'status="499"} 1.0' in told


def test_a_client_that_leaves_cancels_the_sentences_of_its_document(reversing):
    reversing.gate.clear()
    words = [f"w{letter}" for letter in "abcdefghij"]
    document = "".join(f"<p>{word}</p>" for word in words)
    body = json.dumps({"q": document, "format": "html", **PAIR})
    models = {
        ("en", "es"): FunctionRuntime(
            reversing, signatures=("serving_default", "align")
        )
    }
    with service_client.serve(models, batch_tokens=8) as service:
        with connected(service, request(body)):
            service_client.wait_until(lambda: reversing.batches)
            first = len(reversing.batches[0])
            service_client.wait_until(
                lambda: service.measured(WAITING) == len(words) - first
            )
        service_client.wait_until(lambda: service.measured(WAITING) == 0)
        reversing.gate.set()
        answer = service.post("/translate", q="ab", **PAIR)

    assert answer.json() == {"translatedText": "ba"}
    assert 0 < first < len(words)
    assert reversing.batches[1:] == [[b"ab"]]


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux")
def test_who_does_not_read_is_hung_up_on(monkeypatch):
    """The kernel does it, of a connection that takes nothing in."""
    monkeypatch.setattr(middleware, "RESPONSE_SECONDS", 1)
    lost = threading.Event()
    lose = middleware.TimeoutProtocol.connection_lost

    def note(self, error):
        lose(self, error)
        if isinstance(error, OSError):
            lost.set()

    monkeypatch.setattr(middleware.TimeoutProtocol, "connection_lost", note)

    def repeat(texts):
        return service_client.make_outputs([b"b" * 30_000_000 for _ in texts], 10**9)

    many = service_client.serve_function(repeat)
    with many as service, connected(service, request(FIELDS)):
        assert lost.wait(60)


def test_idle_connections_do_not_shut_others_out(reversing, monkeypatch):
    monkeypatch.setattr(middleware, "MAX_CONNECTIONS", 20)
    with (
        service_client.serve_function(reversing) as service,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(30):
            idle = stack.enter_context(connected(service, request(FIELDS)))
            assert idle.recv(65536).startswith(b"HTTP/1.1 200")
        assert service.get("/health").status == 200


@pytest.mark.parametrize(
    "sent", ["", f"{HEAD}Content-Length: 9\r\n\r\n"], ids=["idle", "no body"]
)
def test_510_silent_connections_do_not_shut_health_out(reversing, sent):
    server.allow_connections()
    with (
        service_client.serve_function(reversing) as service,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(510):
            stack.enter_context(connected(service, sent))
        refused = sent != ""
        if refused:
            service_client.wait_until(lambda: service.get("/languages").status == 503)
        health = [service.get(path) for path in ("/health", "/livez")]
        answer = service.get("/languages")

    assert [each.status for each in health] == [200, 200]
    assert answer.status == (503 if refused else 200)
    assert ("too many requests" in answer.body.decode()) == refused


def test_health_names_the_model_that_does_not_answer(monkeypatch):
    def fail(texts):
        raise MemoryError

    with service_client.serve_function(fail) as service:
        for path in ("/health", "/readyz"):
            answer = service.get(path)
            assert answer.status == 503
            assert answer.json() == {"error": "the model of en:es does not answer"}
        assert service.get("/livez").status == 200


def test_a_port_refuses_connections_before_it_listens():
    with contextlib.closing(middleware.bind("127.0.0.1", 0)) as listener:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(listener.getsockname())
        listener.listen()
        socket.create_connection(listener.getsockname()).close()
