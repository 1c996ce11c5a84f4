"""ASGI middleware: limits of requests and connections, disconnected clients.

A slow, silent or disconnected client occupies only a socket, for seconds.
"""

import asyncio
import json
import socket
from collections.abc import Callable

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10  # Timeout for the head of a request; at most twice that.
BODY_SECONDS = 20
# Timeout for a client to read the response.
RESPONSE_SECONDS = 20
MAX_REQUESTS = 500  # Further requests get status 503.
MAX_CONNECTIONS = 2000  # Beyond these the one that is idle longest is closed.


class RequestError(Exception):
    """A request is refused.

    Args:
        status: Int, HTTP status.
        message: One line.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class RequestLimits:
    """ASGI middleware that limits the size, the time and number of requests.

    It reads the complete body before it calls the application, and cancels the
    application if the client disconnects. `HEAD` is answered as `GET`, whose
    body the server omits.

    Args:
        app: The ASGI application.
        byte_limit: Int, maximum size of a body.
        unlimited: Set of paths that do not count as requests, and are never
            refused.
    """

    def __init__(self, app: Callable, byte_limit: int, unlimited: frozenset[str]):
        self._app, self._byte_limit = app, byte_limit
        self._unlimited = unlimited
        self._active = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope["method"] = "GET"
        is_limited = scope["path"] not in self._unlimited
        try:
            if is_limited and self._active >= MAX_REQUESTS:
                raise RequestError(503, "too many requests at a time")
            self._active += is_limited
            try:
                body = await self._read_body(scope, receive)
                if body is not None:
                    answer = self._app(scope, replay_body(body), send)
                    await answer_unless_gone(answer, receive)
            finally:
                self._active -= is_limited
        except RequestError as refusal:
            await send_error(send, refusal)

    async def _read_body(self, scope, receive) -> bytes | None:
        """Returns the body, or `None` if the client has disconnected.

        Raises:
            RequestError: If it is too large, or too slow.
        """
        too_large = RequestError(
            413, f"Invalid request: more than {self._byte_limit} bytes"
        )
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if int(length) > self._byte_limit:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > self._byte_limit:
                        raise too_large
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RequestError(
                408, f"Invalid request: incomplete after {BODY_SECONDS} seconds"
            ) from None
        return bytes(body)


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
        if leaving.done() and not answering.done():
            answering.cancel()
        await asyncio.wait((answering,))
        if not answering.cancelled():
            answering.result()
    finally:
        answering.cancel()
        leaving.cancel()


async def send_error(send: Callable, refusal: RequestError) -> None:
    """Sends an error response; the rest of the request is not read."""
    body = json.dumps({"error": str(refusal)}).encode()
    await send(
        {
            "type": "http.response.start",
            "status": refusal.status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


class TimeoutProtocol(H11Protocol):
    """Uvicorn's HTTP protocol, with a timeout for the head of a request.

    Idle connections give way to new ones.
    """

    def connection_made(self, transport):
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._close_if_silent(object())
        if len(self.connections) > MAX_CONNECTIONS:
            idle = [c for c in self.connections if c.is_idle]
            min(idle, key=lambda c: c._idle_since).transport.abort()

    @property
    def is_busy(self):
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_idle(self):
        return not (self.is_busy or self.transport.is_closing())

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
    """Returns a bound socket, which refuses connections until it listens.

    A client that stops reading is cut off.

    Raises:
        OSError: If the address is not available.
    """
    family, *_, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Only Linux has the option. Connections inherit it.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * RESPONSE_SECONDS
            )
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener
