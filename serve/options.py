"""Options of `python -m serve`."""

import argparse
import dataclasses
import ipaddress
import pathlib
import re
import urllib.parse

import limits

from command_line.errors import UserError
from command_line.options import option, part, positive
from serve.access_control import read_keys
from serve.languages import Pair, read_pair
from translate.runtime.tf_serving import ClientOptions


def read_rates(text: str) -> tuple[limits.RateLimitItem, ...]:
    """Parses rates, for argparse."""
    try:
        return tuple(limits.parse_many(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be such as 60/minute or 60/minute;2000/day. Received: {text}"
        ) from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class HttpOptions:
    """Address, API keys and CORS."""

    host: str = option("127.0.0.1", "address to listen at; 0.0.0.0 means all addresses")
    port: int = option(5000, "port to listen at, 0 for any that is free", int)
    api_keys: pathlib.Path | None = option(
        None,
        "file of API keys, `name: key` or `key` a line (default: no key is needed)",
        kind=pathlib.Path,
        metavar="FILE",
    )
    metrics_token: pathlib.Path | None = option(
        None,
        "file with the token that /metrics needs as `Authorization: Bearer …` "
        "(default: none)",
        kind=pathlib.Path,
        metavar="FILE",
    )
    cors_origin: tuple[str, ...] = option(
        (),
        "allowed CORS origins, such as https://example.org (default: none)",
        nargs="+",
        metavar="URL",
    )
    url_prefix: str = option(
        "", "path under which the service is reached, such as /translate"
    )
    public_url: str | None = option(
        None,
        "scheme and host of links to files, such as https://example.org "
        "(default): what a trusted proxy names, else the address at which a "
        "request arrives",
        metavar="URL",
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        "addresses or networks whose X-Forwarded-For, -Proto and -Host are "
        "believed, such as 10.0.0.0/8 (default: none)",
        nargs="+",
        metavar="ADDRESS",
    )
    access_log: bool = option(
        False, "write a line of JSON to standard output for each request"
    )
    workers: int = option(1, "processes, each with its own models", positive(int))

    def __post_init__(self):
        check_addresses(self)
        if not 0 <= self.port < 2**16:
            raise UserError(
                f"--port must be between 0 and 65535. Received: {self.port}"
            )
        if self.api_keys:
            read_keys(self.api_keys)  # Check before models load.
        token = self.metrics_token
        if token and not (token.is_file() and token.read_bytes().strip()):
            raise UserError(
                f"--metrics-token must be a file with a token. Received: {token}"
            )


def check_addresses(http: HttpOptions) -> None:
    """Checks the prefix, the public URL and the proxies.

    Raises:
        UserError: If one of them is malformed.
    """
    if not re.fullmatch(r"(/[\w.~-]+)*", http.url_prefix, re.ASCII):
        raise UserError(
            "--url-prefix must be a path without a slash at its end, such as "
            f"/translate. Received: {http.url_prefix}"
        )
    try:
        url = urllib.parse.urlsplit(http.public_url or "http://a")
    except ValueError:  # `http://[::1`
        url = urllib.parse.urlsplit("")
    is_plain = url.scheme in ("http", "https") and url.netloc
    if not is_plain or any(url[2:]):
        raise UserError(
            "--public-url must be a scheme and a host, such as "
            f"https://example.org. Received: {http.public_url}"
        )
    for proxy in http.trusted_proxies:
        try:
            ipaddress.ip_network(proxy, strict=False)
        except ValueError:
            raise UserError(
                "--trusted-proxies must be addresses or networks, such as "
                f"10.0.0.0/8. Received: {proxy}"
            ) from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """Limits on the size of requests and of the queue."""

    char_limit: int = option(
        20_000, "characters of each text of a request", positive(int)
    )
    rate_limit: tuple[limits.RateLimitItem, ...] = option(
        (),
        "requests of an API key, or of an address without one, such as "
        "60/minute or 60/minute;2000/day; further ones get status 429; a list "
        "of texts counts as many (default: no limit)",
        kind=read_rates,
        metavar="RATE",
    )
    batch_limit: int = option(100, "texts of a request", positive(int))
    byte_limit: int = option(2**20, "bytes of a request, files included", positive(int))
    queue_limit: int = option(
        2000,
        "sentences in the queue of a model; further requests get status 429",
        positive(int),
    )
    batch_tokens: int = option(
        1024,
        "source tokens that a model translates at a time, one counted as four bytes",
        positive(int),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """All options of the command."""

    pair: list[Pair] = option(
        help="languages and what translates them: an export's folder, or the "
        "address of a TF Serving, [MODEL@]HOST:PORT or "
        "[MODEL@]https://…; once for each pair",
        kind=read_pair,
        action="append",
        metavar="SOURCE:TARGET=LOCATION",
    )
    http: HttpOptions = part("HTTP server")
    limits: LimitOptions = part("limits")
    client: ClientOptions = part("with the address of a TF Serving")
