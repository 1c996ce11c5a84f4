"""The reverse proxy of docs/how_to/service.md, in front of two services."""

import contextlib
import os
import pathlib
import re
import socket
import ssl
import subprocess

import pytest
import urllib3

from serve.options import HttpOptions
from tests.helpers import service_client
from tests.helpers.allowed_skips import find_program
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.service_client import ReversingModel, wait_until

GUIDE = pathlib.Path(__file__).parents[2] / "docs/how_to/service.md"
PAIR = {"source": "en", "target": "es"}
ASKED = 'translate_requests_total{path="/languages",status="200"}'

pytestmark = pytest.mark.peers("caddy")


@contextlib.contextmanager
def serve(port):
    http = HttpOptions(
        port=0, trusted_proxies=("127.0.0.1",), public_url=f"https://localhost:{port}"
    )
    models = {("en", "es"): FunctionRuntime(ReversingModel())}
    with service_client.serve(models, http) as service:
        yield service


def write_config(folder, port, services):
    """Writes the guide's configuration, with addresses and a certificate of the test.

    A client has three seconds for the head of a request. The handshake has the same
    limit, and one second is short for it on a busy machine.
    """
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-days", "1"]
        + ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        + ["-keyout", folder / "key.pem", "-out", folder / "certificate.pem"],
        check=True,
        capture_output=True,
    )
    text = GUIDE.read_text("utf-8")
    text = re.search(r"```caddyfile\n(.*?)```", text, re.S)[1]
    certificate = f"tls {folder}/certificate.pem {folder}/key.pem"
    first, second = services
    for guide, ours in (
        ("{\n\tservers", "{\n\tadmin off\n\tauto_https disable_redirects\n\tservers"),
        ("mt.example.org {", f"https://localhost:{port} {{\n\t{certificate}"),
        ("127.0.0.1:5001 127.0.0.1:5002", f"{first.url[7:]} {second.url[7:]}"),
        ("read_header 10s", "read_header 3s"),
    ):
        assert text.count(guide) == 1
        text = text.replace(guide, ours)
    (folder / "Caddyfile").write_text(text)


@contextlib.contextmanager
def run_proxy(folder, port, services):
    """Runs the proxy; yields a client that trusts its certificate."""
    write_config(folder, port, services)
    folders = {f"XDG_{kind}_HOME": str(folder) for kind in ("CONFIG", "DATA")}
    log = folder / "log"
    with (
        log.open("w") as file,
        subprocess.Popen(
            [find_program("caddy"), "run", "--config", folder / "Caddyfile"],
            stderr=file,
            env=os.environ | folders,
        ) as process,
        urllib3.PoolManager(ca_certs=folder / "certificate.pem", retries=0) as client,
    ):

        def is_ready():
            assert process.poll() is None, log.read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        try:
            wait_until(is_ready)
            yield client
        finally:
            process.terminate()


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture
def services(port):
    """Two services, and the stacks that end them."""
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        stacks = [first, second]
        yield [(stack.enter_context(serve(port)), stack) for stack in stacks]


def test_the_proxy_of_the_guide(port, services, tmp_path):
    with run_proxy(tmp_path, port, [service for service, _ in services]) as client:
        url = f"https://localhost:{port}"
        evil = {"X-Forwarded-Host": "evil.example", "X-Forwarded-For": "192.0.2.1"}
        answer = client.request(
            "POST",
            f"{url}/translate_file",
            fields={"file": ("a.txt", "ab"), **PAIR},
            headers=evil,
        )
        link = answer.json()["translatedFileUrl"]
        assert link.startswith(f"{url}/download_file/")
        assert {client.request("GET", link).data for _ in range(10)} == {b"ba"}

        assert client.request("GET", f"{url}/metrics").status == 404

        # All requests of an address go to one service, until it ends.
        asked = [client.request("GET", f"{url}/languages").status for _ in range(5)]
        counts = [service.measured(ASKED) for service, _ in services]
        assert asked == [200] * 5
        assert sorted(counts) == [0, 5]
        _, stack = services[counts.index(5)]
        stack.close()
        assert client.request("GET", f"{url}/languages").status == 200


def test_the_proxy_of_the_guide_closes_on_a_slow_head(port, services, tmp_path):
    with run_proxy(tmp_path, port, [service for service, _ in services]):
        context = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
        with (
            socket.create_connection(("localhost", port), 20) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
        ):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            received = b""
            while part := connection.recv(4096):  # It would time out after 20 s.
                received += part

    assert b" 200 " not in received
