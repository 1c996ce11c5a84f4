"""Tests of `translate.runtime.server_address`: ports, names and prefixes."""

import http.client

import pytest

from command_line.errors import UserError
from translate.runtime.server_address import connect_rest, read_address


@pytest.mark.parametrize(
    ("server", "host", "port", "prefix"),
    [
        ("https://mt.example.org", "mt.example.org", None, ""),
        ("http://mt.example.org/en/", "mt.example.org", None, "/en"),
        ("https://mt.example.org:8501/mt", "mt.example.org", 8501, "/mt"),
        ("http://[::1]:8501", "::1", 8501, ""),
        ("localhost:8500", "localhost", 8500, ""),
    ],
)
def test_the_connection_is_that_of_the_url(server, host, port, prefix):
    tls = server.startswith("https:")
    kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection

    address = read_address(server)
    connection = connect_rest(address, timeout=1)

    assert type(connection) is kind
    assert (connection.host, connection.port) == (host, port or kind.default_port)
    assert address.netloc == f"{f'[{host}]' if ':' in host else host}:" + str(
        port or kind.default_port
    )
    assert address.prefix == prefix


def test_a_file_without_certificates_is_refused(tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text("")
    with pytest.raises(UserError, match="must be PEM.*no certificate"):
        read_address("https://a.org", path)
