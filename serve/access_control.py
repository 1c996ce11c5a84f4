"""Admits requests by their API key and by the rate of their client."""

import hmac
import ipaddress
import math
import pathlib
import re
import sys
import time

import fastapi
import limits
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from command_line.errors import UserError
from serve.fair_queue import CLIENT
from serve.schemas import http_error

LINE = re.compile(r"(?:(?P<name>[\w.@-]+):\s+)?(?P<key>\S+)")
# Providers give each customer a network of this length at least.
IPV6_PREFIX = 64
SHOWN = 4  # Characters of an unknown key in the log.


def read_keys(path: pathlib.Path) -> dict[str, bytes]:
    """Returns the keys of a file by name; no message shows a key.

    A line is `name: key` or a key alone, whose name is then `line 3`. Empty
    lines and those that begin with `#` are skipped.

    Raises:
        UserError: If the file holds no key, or a line that is none.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (UnicodeError, OSError):
        lines = []
    keys = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            raise UserError(
                "--api-keys must hold lines `name: key` or `key`. "
                f"Received: {path}, whose line {number} is neither"
            )
        name, key = match["name"] or f"line {number}", match["key"].encode()
        if name in keys or key in keys.values():
            raise UserError(
                "--api-keys must hold each name and each key once. "
                f"Received: {path}, whose line {number} repeats one"
            )
        keys[name] = key
    if not keys:
        raise UserError(
            f"--api-keys must hold keys, one a line, UTF-8. Received: {path}"
        )
    return keys


def find_name(keys: dict[str, bytes], key: str) -> str | None:
    """Returns the name of a key, or `None`, in constant time."""
    # Compare with all keys: the time must not depend on the position.
    found = [n for n, each in keys.items() if hmac.compare_digest(key.encode(), each)]
    return found[0] if found else None


class AccessControl:
    """Admits requests by keys, if there are any, and by rates, all of which hold.

    The rate is that of a client: a key, or an address if the request has no valid
    key. So keys cannot be guessed any faster.
    """

    def __init__(self, keys: dict[str, bytes], rates: list[limits.RateLimitItem]):
        self.keys, self._rates = keys, rates
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def check_address(self, request: fastapi.Request) -> None:
        """Refuses an address whose rate is spent, before its body is read for a key."""
        if not self.keys:
            self._check_rates(find_address(request.client), 1)

    def admit(self, request: fastapi.Request, key: str, cost: int) -> None:
        """Admits a request, counts it as `cost` requests, and sets `CLIENT`.

        Raises:
            HTTPException: If the key is missing (`""`) or unknown, or the
                client sends too much.
        """
        name = find_name(self.keys, key)
        address = find_address(request.client)
        client = f"key {name}" if name else address  # A name may be an address.
        CLIENT.set(client)
        self._check_rates(client, cost)
        for rate in self._rates:
            self._limiter.hit(rate, client, cost=min(cost, rate.amount))
        if not self.keys:
            return
        if not key:
            raise http_error("Please contact the server operator to get an API key")
        if not name:
            path, shown = request.url.path, f"{key[:SHOWN]!a}…"
            print(f"{path}: refused API key {shown} from {address}", file=sys.stderr)
            raise http_error("Invalid API key", 403)

    def _check_rates(self, client: str, cost: int) -> None:
        for rate in self._rates:
            if not self._limiter.test(rate, client, cost=min(cost, rate.amount)):
                reset = self._limiter.get_window_stats(rate, client).reset_time
                seconds = max(1, math.ceil(reset - time.time()))
                raise fastapi.HTTPException(
                    429, f"Slowdown: {rate}", {"Retry-After": str(seconds)}
                )


def find_address(client: tuple[str, int] | None) -> str:
    """Returns the address of a client, its host and port; of IPv6, its network."""
    host = client[0] if client else "unknown"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, IPV6_PREFIX), strict=False))
