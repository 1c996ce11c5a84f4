"""Admits requests by their API key and by the rate of their client."""

import ipaddress
import math
import sys
import time

import fastapi
import limits
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from serve.api_keys import ApiKeys
from serve.schemas import http_error

SHOWN = 4  # Characters of an unknown key in the log.
# Providers give each customer a network of this length at least.
IPV6_PREFIX = 64


class AccessControl:
    """Admits requests.

    The rate is that of a key, or of an address if the request has no valid
    key. So keys cannot be guessed any faster.

    Args:
        keys: The keys; empty if clients need none.
        rates: Maximum rates; all of them hold.
    """

    def __init__(self, keys: ApiKeys, rates: list[limits.RateLimitItem]):
        self.keys, self._rates = keys, rates
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def admit(self, request: fastapi.Request, key: str, cost: int) -> None:
        """Admits a request, and counts it.

        Args:
            request: The request.
            key: API key, or `""`.
            cost: Int, how many requests this one counts as.

        Raises:
            HTTPException: If the key is missing or unknown, or the client
                sends too much.
        """
        name = self.keys.find_name(key) if key else None
        address = find_address(request)
        self._count(name or address, cost)
        if not self.keys:
            return
        if not key:
            raise http_error("Please contact the server operator to get an API key")
        shown = name or f"unknown: {key[:SHOWN]!a}…"
        if hasattr(request.state, "log"):  # Fields of the access log.
            request.state.log["api_key"] = shown
        if not name:
            path = request.url.path
            print(f"{path}: refused API key {shown} from {address}", file=sys.stderr)
            raise http_error("Invalid API key", 403)

    def _count(self, client: str, cost: int) -> None:
        costs = [(rate, min(cost, rate.amount)) for rate in self._rates]
        for rate, count in costs:
            if not self._limiter.test(rate, client, cost=count):
                reset = self._limiter.get_window_stats(rate, client).reset_time
                seconds = max(1, math.ceil(reset - time.time()))
                raise fastapi.HTTPException(
                    429, f"Slowdown: {rate}", {"Retry-After": str(seconds)}
                )
        for rate, count in costs:
            self._limiter.hit(rate, client, cost=count)


def find_address(request: fastapi.Request) -> str:
    """Returns the address of a client; of IPv6, its network."""
    host = request.client.host if request.client else "unknown"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    network = ipaddress.ip_network((address, IPV6_PREFIX), strict=False)
    return str(network)
