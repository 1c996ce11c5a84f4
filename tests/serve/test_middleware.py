"""Clients that are slow, silent, greedy or gone cost nothing."""

import contextlib
import json
import socket
import threading

import pytest
import urllib3

from serve import middleware
from serve.__main__ import allow_connections
from serve.middleware import TimeoutProtocol
from serve.options import HttpOptions
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


def start(client, text="ab"):
    """Starts a thread for a translation."""
    return service_client.in_thread(client.post, "/translate", q=text, **PAIR)


def wait_for(service, count):
    """Waits until so many sentences wait."""
    service_client.wait_until(lambda: service.measured(WAITING) == count)


def serve(reversing, signatures=("serving_default",), **options):
    models = {("en", "es"): FunctionRuntime(reversing, signatures)}
    return service_client.serve(models, HttpOptions(port=0, **options))


def request(body):
    return f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}"


@pytest.fixture
def checks(reversing, monkeypatch):
    """Checks of connections; they begin when a head has come, however late."""
    found, check = [], TimeoutProtocol._close_if_silent

    def check_when_asked(protocol, before):
        if not reversing.batches:
            protocol.loop.call_later(0.01, check_when_asked, protocol, before)
            return
        found.append(before)
        check(protocol, before)

    monkeypatch.setattr(TimeoutProtocol, "_close_if_silent", check_when_asked)
    monkeypatch.setattr(middleware, "HEAD_SECONDS", 0.02)
    return found


SENT = ["", "POST /tra", f"{HEAD}X-Slow: yes\r\n"]


@pytest.mark.parametrize("sent", SENT, ids=len)
def test_who_sends_no_head_is_hung_up_on(reversing, monkeypatch, sent):
    monkeypatch.setattr(middleware, "HEAD_SECONDS", 0.1)
    with (
        service_client.serve_function(reversing) as service,
        connected(service, sent) as client,
    ):
        assert read_all(client) == b""


@pytest.mark.parametrize("sent", SENT, ids=len)
@pytest.mark.usefixtures("checks")
def test_nor_is_a_second_head_waited_for(reversing, sent):
    with (
        service_client.serve_function(reversing) as service,
        connected(service, request(FIELDS), sent) as client,
    ):
        assert read_all(client).startswith(b"HTTP/1.1 200")


def test_a_request_that_works_long_is_not_hung_up_on(reversing, checks):
    reversing.gate.clear()
    with service_client.serve_function(reversing) as service:
        thread, answers = start(service)
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
    assert b'{"error": "Invalid request: its body came too slowly"}' in answer


def test_all_together_have_few_requests_at_a_time(reversing, monkeypatch):
    monkeypatch.setattr(middleware, "MAX_REQUESTS", 1)
    reversing.gate.clear()
    with service_client.serve_function(reversing) as service:
        thread, answers = start(service)
        service_client.wait_until(lambda: reversing.batches)
        busy, health = service.get("/languages"), service.get("/livez")
        reversing.gate.set()
        thread.join()

    assert [each.status for each in (busy, health, *answers)] == [503, 200, 200]
    assert busy.json() == {"error": "too many requests at a time"}


def test_an_address_takes_not_all_requests_at_a_time(reversing, monkeypatch):
    monkeypatch.setattr(middleware, "MAX_CLIENT_REQUESTS", 2)
    reversing.gate.clear()
    with serve(reversing, trusted_proxies=("127.0.0.1",)) as service:
        first, second = (
            service_client.ServiceClient(service.port, **{"X-Forwarded-For": address})
            for address in ("192.0.2.1", "192.0.2.2")
        )
        started = []
        for number, client in enumerate((first, first, second)):
            if number == 2:
                refused = first.post("/translate", q="ab", **PAIR)
            started.append(start(client))
            if number == 0:
                service_client.wait_until(lambda: reversing.batches)
            wait_for(service, number)
        reversing.gate.set()
        for thread, _ in started:
            thread.join()
        again = first.post("/translate", q="ab", **PAIR)

    assert refused.status == 429
    assert refused.json() == {"error": "Slowdown: too many requests at a time"}
    assert refused.headers["retry-after"] == "1"
    assert [answer.status for _, (answer,) in started] == [200] * 3
    assert again.status == 200


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


@pytest.mark.parametrize(
    ("path", "text", "format"),
    [
        ("/translate", "gone", "text"),
        ("/sentences", "gone", "text"),
        ("/translate", "<p>gone</p>" * 3, "html"),
    ],
)
def test_what_a_client_that_left_asked_is_not_translated(reversing, path, text, format):
    reversing.gate.clear()
    signatures = "serving_default", "align"
    with serve(reversing, signatures=signatures) as service:
        thread, answers = start(service, "first")
        service_client.wait_until(lambda: reversing.batches)
        asked = request(json.dumps({"q": text, "format": format, **PAIR}))
        with connected(service, asked.replace("/translate", path)):
            wait_for(service, 1)
        wait_for(service, 0)
        reversing.gate.set()
        thread.join()
        metrics = service.get("/metrics").data.decode()

    assert answers[0].status == 200
    assert reversing.batches == [[b"first"]]
    assert f'translate_request_seconds_count{{path="{path}"}}' in metrics
    assert path == "/sentences" or 'status="499"} 1.0' in metrics


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
    "sent",
    ["", f"{HEAD}X-Forwarded-For: 192.0.2.%d\r\nContent-Length: 9\r\n\r\n"],
    ids=["idle", "no body"],
)
def test_510_silent_connections_shut_nobody_out(reversing, sent):
    allow_connections()
    with (
        service_client.serve_function(reversing) as service,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(510):
            stack.enter_context(connected(service, sent))
        paths = ("/health", "/livez", "/languages")
        statuses = [service.get(path).status for path in paths]
        answer = service.post("/translate", q="ab", **PAIR)

    assert statuses == [200, 200, 200]
    assert answer.json() == {"translatedText": "ba"}


def test_the_address_with_most_incomplete_bodies_loses_its_oldest(
    reversing, monkeypatch
):
    monkeypatch.setattr(middleware, "MAX_UPLOADS", 3)

    def send_head(stack, address):
        head = HEAD + f"X-Forwarded-For: {address}\r\nContent-Length: {len(FIELDS)}"
        return stack.enter_context(connected(service, f"{head}\r\n\r\n"))

    proxy = {"trusted_proxies": ("127.0.0.1",)}
    with serve(reversing, **proxy) as service, contextlib.ExitStack() as stack:
        other = send_head(stack, "192.0.2.1")
        first = send_head(stack, "192.0.2.2")
        service.get("/livez")  # It is read.
        more = [send_head(stack, "192.0.2.2") for _ in range(2)]
        dropped = read_all(first)
        for client in (other, *more):
            client.sendall(FIELDS.encode())
        answers = [client.recv(65536) for client in (other, *more)]

    assert dropped.startswith(b"HTTP/1.1 408")
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)


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


FORWARDED = {"Host": "evil.example", "X-Forwarded-For": "203.0.113.7"}
FORWARDED |= {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "good.example"}


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, "http://{own}"),
        ({"trusted_proxies": ("10.0.0.0/8",)}, "http://{own}"),
        ({"trusted_proxies": ("127.0.0.0/8",)}, "https://{own}"),
        ({"public_url": "https://a.example:8"}, "https://a.example:8"),
    ],
)
def test_a_link_never_has_the_host_that_a_client_names(reversing, options, address):
    with serve(reversing, url_prefix="/mt", **options) as service:
        fields = {"file": ("a.txt", b"ab"), **PAIR}
        body, kind = urllib3.encode_multipart_formdata(fields)
        headers = {**FORWARDED, "Content-Type": kind}
        answer = service._ask("POST", "/translate_file", body, headers)
        own = f"127.0.0.1:{service.port}"

    url = answer.json()["translatedFileUrl"]
    start = f"{address.format(own=own)}/mt/download_file/"
    assert url.startswith(start), url


def test_a_prefix_is_a_path_beside_the_root(reversing):
    with serve(reversing, url_prefix="/a/mt") as service:
        assert service.get("/a/mt/health").json() == {"status": "ok"}
        assert service.get("/health").json() == {"status": "ok"}
        assert service.get("/a/mt/").status == 200
        moved = service.get("/a/mt").headers["location"]
        assert moved == f"{service.url}/a/mt/"
        assert service.get("/a/health").status == 404


def test_head_is_get_without_a_body(reversing):
    with serve(reversing) as service:
        head, get = (service._ask(method, "/", None, {}) for method in ("HEAD", "GET"))

    assert (head.status, head.data) == (200, b"")
    assert head.headers["content-length"] == str(len(get.data))
