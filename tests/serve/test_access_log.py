"""Tests of the access log, request ids, and of addresses behind proxies."""

import json
import re

import pytest
import urllib3

from serve.options import HttpOptions
from tests.helpers import service_client
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.service_client import ReversingModel

PAIR = {"source": "en", "target": "es"}
FORWARDED = {
    "Host": "evil.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "good.example",
    "X-Forwarded-For": "203.0.113.7",
}


def serve(**options):
    http = HttpOptions(port=0, **options)
    return service_client.serve({("en", "es"): FunctionRuntime(ReversingModel())}, http)


def test_each_request_has_a_line_and_an_id(capfd):
    with serve(access_log=True, trusted_proxies=("127.0.0.1",)) as service:
        ids = [
            service.get("/health?q=secret", **headers).headers["x-request-id"]
            for headers in (
                {"X-Request-ID": "my-id_1.2:3"},
                {"X-Request-ID": "two words"},
                FORWARDED,
            )
        ]
        service.post("/translate", q="secret", api_key="secret", **PAIR)
        service.get("/nowhere")

    lines = [json.loads(x) for x in capfd.readouterr().out.splitlines()]
    assert [line["request_id"] for line in lines[:3]] == ids
    assert ids[0] == "my-id_1.2:3"
    assert re.fullmatch("[0-9a-f]{32}", ids[1])
    assert [line["status"] for line in lines] == [200, 200, 200, 200, 404]
    assert [line["client"] for line in lines[1:3]] == ["127.0.0.1", "203.0.113.7"]
    assert lines[3]["path"] == "/translate"
    assert "secret" not in json.dumps(lines)


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, "http://{own}"),
        ({"trusted_proxies": ("10.0.0.0/8",)}, "http://{own}"),
        ({"trusted_proxies": ("127.0.0.0/8",)}, "https://good.example"),
        ({"public_url": "https://a.example:8"}, "https://a.example:8"),
    ],
)
def test_a_link_never_has_the_host_that_a_client_names(options, address):
    with serve(url_prefix="/mt", **options) as service:
        fields = {"file": ("a.txt", b"ab"), **PAIR}
        body, kind = urllib3.encode_multipart_formdata(fields)
        headers = {**FORWARDED, "Content-Type": kind}
        answer = service._ask("POST", "/translate_file", body, headers)
        own = f"127.0.0.1:{service.port}"

    url = answer.json()["translatedFileUrl"]
    start = f"{address.format(own=own)}/mt/download_file/"
    assert url.startswith(start), url


def test_a_prefix_is_a_path_beside_the_root():
    with serve(url_prefix="/a/mt") as service:
        assert service.get("/a/mt/health").json() == {"status": "ok"}
        assert service.get("/health").json() == {"status": "ok"}
        assert service.get("/a/mt/").status == 200
        moved = service.get("/a/mt").headers["location"]
        assert moved == f"{service.url}/a/mt/"
        assert service.get("/a/health").status == 404


def test_head_is_get_without_a_body():
    with serve() as service:
        head, get = (service._ask(method, "/", None, {}) for method in ("HEAD", "GET"))

    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(get.body))
