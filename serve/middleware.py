"""ASGI middleware: limits of requests and connections, and public addresses."""

import asyncio
import collections
import contextlib
import json
import socket
import urllib.parse
from collections.abc import Callable

from fastapi import HTTPException
from fastapi.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from serve.access_control import find_address

HEAD_SECONDS = 10  # Timeout for the head of a request; at most twice that.
BODY_SECONDS = 20
RESPONSE_SECONDS = 20  # Timeout for a client to read the response.
MAX_REQUESTS = 500  # Further requests get status 503.
MAX_CLIENT_REQUESTS = 250  # Further requests of an address get status 429.
MAX_UPLOADS = 250  # Incomplete bodies; beyond these one is dropped.
MAX_CONNECTIONS = 2000  # Beyond these the one that is idle longest is closed.


class PublicAddress:
    """ASGI middleware that decides on which address links are based.

    The `Host` header is what any client writes, so it is replaced: by the host of
    `public_url` or, if that is `None`, by the address at which the connection arrived.
    A proxy may remove the `prefix` of all links from the paths of requests.
    """

    def __init__(self, app: Callable, prefix: str, public_url: str | None):
        self._app, self._prefix = app, prefix
        self._public = urllib.parse.urlsplit(public_url or "")

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            host, port = scope["server"]
            host = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            host = self._public.netloc or host
            scope["scheme"] = self._public.scheme or scope["scheme"]
            kept = [pair for pair in scope["headers"] if pair[0] != b"host"]
            scope["headers"] = [*kept, (b"host", host.encode())]
            scope["root_path"] = self._prefix
        await self._app(scope, receive, send)


class RequestLimits:
    """ASGI middleware that limits the size, the time and number of requests.

    It reads the complete body before it calls the application, and cancels the
    application if the client disconnects. A request counts from then on, but for
    `unlimited` paths. `HEAD` is answered as `GET`, whose body the server omits.
    """

    def __init__(self, app: Callable, byte_limit: int, unlimited: frozenset[str]):
        self._app, self._byte_limit = app, byte_limit
        self._unlimited = unlimited
        self._active = collections.Counter()  # By address.
        self._uploads = {}  # The address of each incomplete body, by its timeout.

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope["method"] = "GET"
        is_limited = scope["path"] not in self._unlimited
        address = find_address(scope["client"])
        try:
            body = await self._read_body(scope, receive, address)
            if body is None:
                return
            if is_limited:
                self._check_active(address)
                self._active[address] += 1
            try:
                answer = self._app(scope, replay_body(body), send)
                await answer_unless_gone(answer, receive)
            finally:
                if is_limited:
                    self._active -= collections.Counter([address])
        except HTTPException as refusal:
            # The rest of the request is not read.
            response = Response(
                json.dumps({"error": refusal.detail}),
                refusal.status_code,
                {"connection": "close", **(refusal.headers or {})},
                "application/json",
            )
            await response(scope, receive, send)

    def _check_active(self, address: str) -> None:
        """Refuses a request of an address if too many are being answered."""
        message = "too many requests at a time"
        if self._active[address] >= MAX_CLIENT_REQUESTS:
            raise HTTPException(429, f"Slowdown: {message}", {"Retry-After": "1"})
        if self._active.total() >= MAX_REQUESTS:
            raise HTTPException(503, message)

    async def _read_body(self, scope, receive, address: str) -> bytes | None:
        """Returns the body, or `None` if the client has disconnected."""
        limit, body, more = self._byte_limit, bytearray(), True
        too_large = HTTPException(413, f"Invalid request: more than {limit} bytes")
        if int(dict(scope["headers"]).get(b"content-length", 0)) > limit:
            raise too_large
        try:
            async with asyncio.timeout(BODY_SECONDS) as timeout:
                self._uploads[timeout] = address
                self._drop_upload()
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > limit:
                        raise too_large
                    more = message.get("more_body", False)
        except TimeoutError:
            message = "Invalid request: its body came too slowly"
            raise HTTPException(408, message) from None
        finally:
            self._uploads.pop(timeout, None)
        return bytes(body)

    def _drop_upload(self) -> None:
        """Drops the oldest body of the address that has most, if there are too many."""
        if len(self._uploads) > MAX_UPLOADS:
            ((address, _),) = collections.Counter(self._uploads.values()).most_common(1)
            oldest = next(t for t, a in self._uploads.items() if a == address)
            del self._uploads[oldest]
            with contextlib.suppress(RuntimeError):  # It has just expired.
                oldest.reschedule(0)


def replay_body(body: bytes) -> Callable:
    """Returns a `receive` that returns the body once and then blocks."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if not messages:
            await asyncio.Future()
        return messages.pop()

    return receive


async def answer_unless_gone(answer, receive: Callable) -> None:
    """Runs a coroutine until it ends or the client disconnects."""
    answering = asyncio.ensure_future(answer)
    # After the body, only a disconnect can come.
    leaving = asyncio.ensure_future(receive())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            answering.cancel()
        await asyncio.wait((answering,))
        if not answering.cancelled():
            answering.result()
    finally:
        answering.cancel()
        leaving.cancel()


class TimeoutProtocol(H11Protocol):
    """Uvicorn's protocol with a timeout for heads; idle connections give way."""

    def connection_made(self, transport):
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._close_if_silent(object())
        if len(self.connections) > MAX_CONNECTIONS:
            idle = [each for each in self.connections if not each.is_busy]
            idle = [each for each in idle if not each.transport.is_closing()]
            if idle:
                min(idle, key=lambda each: each._idle_since).transport.abort()

    @property
    def is_busy(self):
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def on_response_complete(self):
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def _close_if_silent(self, before):
        """Closes a connection that still has not sent a request."""
        if self.transport.is_closing():
            return
        now = object() if self.is_busy else self.cycle
        if now is before:
            self.transport.abort()
        else:
            self.loop.call_later(HEAD_SECONDS, self._close_if_silent, now)


def bind(host: str, port: int) -> socket.socket:
    """Returns a bound socket, which refuses connections until it listens."""
    family, *_, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # A client that stops reading is cut off. Only Linux has the option.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * RESPONSE_SECONDS
            )
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener
