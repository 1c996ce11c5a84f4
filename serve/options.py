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
from documents.glossary import GlossaryFile, parse_glossary_option
from serve.access_control import read_keys
from serve.languages import Pair, read_pair
from translate.loading import GlossaryMatchOptions
from translate.runtime.tf_serving import ClientOptions

PREFIX = re.compile(r"(/[\w.~-]+)*", re.ASCII)


def read_rates(text: str) -> tuple[limits.RateLimitItem, ...]:
    """Parses rates, for argparse."""
    try:
        return tuple(limits.parse_many(text))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be such as 60/minute or 60/minute;2000/day. Received: {text}"
        ) from None


def is_origin(text: str) -> bool:
    """Returns whether a text is the scheme and the host of a URL, or empty."""
    try:
        scheme, host, *rest = urllib.parse.urlsplit(text)
    except ValueError:  # `http://[::1`
        return False
    return not text or (scheme in ("http", "https") and host != "" and not any(rest))


def is_network(text: str) -> bool:
    """Returns whether a text is an IP address or network."""
    try:
        return bool(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return False


CHECKS = (
    ("port", lambda port: 0 <= port < 2**16, "between 0 and 65535"),
    ("url_prefix", PREFIX.fullmatch, "a path such as /mt, without a slash at its end"),
    ("public_url", is_origin, "a scheme and a host, such as https://example.org"),
    ("trusted_proxies", is_network, "addresses or networks, such as 10.0.0.0/8"),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HttpOptions:
    """Address, API keys and reverse proxy."""

    host: str = option("127.0.0.1", "address to listen at; 0.0.0.0 means all addresses")
    port: int = option(5000, "port to listen at, 0 for any that is free", int)
    api_keys: pathlib.Path | None = option(
        None,
        "file of API keys, `name: key` or `key` a line (default: no key is needed)",
        kind=pathlib.Path,
        metavar="FILE",
    )
    url_prefix: str = option(
        "", "path under which the service is reached, such as /translate"
    )
    public_url: str | None = option(
        None,
        "scheme and host of links to files, such as https://example.org "
        "(default: the address at which a request arrives)",
        metavar="URL",
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        "addresses or networks whose X-Forwarded-For and -Proto are believed, "
        "such as 10.0.0.0/8 (default: none)",
        nargs="+",
        metavar="ADDRESS",
    )

    def __post_init__(self):
        for name, is_valid, wanted in CHECKS:
            values = getattr(self, name)
            for value in values if isinstance(values, tuple | list) else (values,):
                if value is not None and not is_valid(value):
                    name = name.replace("_", "-")
                    raise UserError(f"--{name} must be {wanted}. Received: {value}")
        if self.api_keys:
            read_keys(self.api_keys)  # Check before models load.


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
        "of texts counts as many, and a text as one more for each 1,000 "
        "characters (default: no limit)",
        kind=read_rates,
        metavar="RATE",
    )
    batch_limit: int = option(100, "texts of a request", positive(int))
    byte_limit: int = option(2**20, "bytes of a request, files included", positive(int))
    queue_limit: int = option(
        2000,
        "sentences of a client in the queue of a model; further requests get "
        "status 429, and a request of more sentences 400",
        positive(int),
    )
    batch_tokens: int = option(
        1024,
        "source tokens that a model translates at a time, one counted as four bytes",
        positive(int),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeOptions(GlossaryMatchOptions):
    """All options of the command."""

    pair: list[Pair] = option(
        help="languages and what translates them: an export's folder, or the "
        "address of a TF Serving, [MODEL@]HOST:PORT; once for each pair",
        kind=read_pair,
        action="append",
        metavar="SOURCE:TARGET=LOCATION",
    )
    glossary: list[GlossaryFile] | None = option(
        None,
        "terms that translations must have, as `translate --glossary` reads them; once "
        "for each pair (default: none)",
        kind=parse_glossary_option,
        action="append",
        metavar="SOURCE:TARGET=FILE",
    )
    http: HttpOptions = part("HTTP server")
    limits: LimitOptions = part("limits")
    client: ClientOptions = part("with the address of a TF Serving")
