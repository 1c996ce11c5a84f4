"""ASGI middleware: body-size limit, timeouts and client-disconnect handling.

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
READ_SECONDS = 20
GONE = 499  # nginx's status for a client that disconnected.


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
    """ASGI middleware that limits the size and the time of requests.

    It reads the complete body before it calls the application, and cancels the
    application if the client disconnects.

    Args:
        app: The ASGI application.
        byte_limit: Int, maximum size of a body.
        observe: Function that receives path, status and seconds of each
            request; the status is `GONE` if the client has disconnected.
    """

    def __init__(self, app: Callable, byte_limit: int, observe: Callable):
        self._app, self._byte_limit = app, byte_limit
        self._observe = observe

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clock = asyncio.get_running_loop().time
        started, status = clock(), GONE

        async def noting_send(message):
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            body = await self._read_body(scope, receive)
            if body is not None:
                answer = self._app(scope, replay_body(body), noting_send)
                await answer_unless_gone(answer, receive)
        except RequestError as refusal:
            await send_error(noting_send, refusal)
        finally:
            self._observe(scope["path"], status, clock() - started)

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
        await asyncio.wait(
            (answering, leaving), return_when=asyncio.FIRST_COMPLETED
        )
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
    """Uvicorn's HTTP protocol, with a timeout for the head of a request."""

    def connection_made(self, transport):
        super().connection_made(transport)
        self._look(object())

    def _look(self, before):
        """Closes a connection that still has not sent a request."""
        if self.transport.is_closing():
            return
        is_busy = self.cycle is not None and not self.cycle.response_complete
        now = object() if is_busy else self.cycle
        if now is before:
            self.transport.abort()
        else:
            self.loop.call_later(HEAD_SECONDS, self._look, now)


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket; a client that stops reading is cut off.

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
                socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * READ_SECONDS
            )
        listener.bind(address)
        listener.listen(1024)
    except BaseException:
        listener.close()
        raise
    return listener
