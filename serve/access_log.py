"""ASGI middleware: request ids, metrics and the access log."""

import asyncio
import datetime
import json
import re
import uuid
from collections.abc import Callable

GONE = 499  # nginx's status for a client that disconnected.
REQUEST_ID = re.compile(rb"[\w.:-]{1,128}", re.ASCII)


class AccessLog:
    """ASGI middleware that gives each request an id, and records its end.

    The id is that of the request's `X-Request-ID`, if it has one of up to 128
    letters, digits and `.:_-`; else a new one. The application finds it in
    `request.state.request_id`, the client in the header of the response.
    Entries of the dict `request.state.log` become fields of the log's line.

    Args:
        app: The ASGI application.
        observe: Function that receives the path of the route (`other`:
            unknown path), status and seconds of each request; the status is
            `GONE` if the client has disconnected.
        writes: Bool, whether to write a line of JSON for each request to
            standard output. Texts, queries and keys are not in it.
    """

    def __init__(self, app: Callable, observe: Callable, writes: bool):
        self._app, self._observe, self._writes = app, observe, writes

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clock = asyncio.get_running_loop().time
        started, status, length = clock(), GONE, 0
        given = dict(scope["headers"]).get(b"x-request-id", b"")
        if not REQUEST_ID.fullmatch(given):
            given = uuid.uuid4().hex.encode()
        state = {"request_id": given.decode(), "log": {}}
        asked = {**scope, "state": {**scope.get("state", {}), **state}}

        async def noting_send(message):
            nonlocal status, length
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (b"x-request-id", given)]
                message = {**message, "headers": headers}
            if scope["method"] != "HEAD":
                length += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(asked, receive, noting_send)
        finally:
            seconds = clock() - started
            path = getattr(asked.get("route"), "path", "other")
            self._observe(path, status, seconds)
            if self._writes:
                client = scope["client"] and scope["client"][0]
                write_line(
                    request_id=state["request_id"],
                    client=client,
                    method=scope["method"],
                    path=scope["path"],
                    status=status,
                    bytes=length,
                    seconds=round(seconds, 4),
                    **state["log"],
                )


def write_line(**fields) -> None:
    """Writes a line of the access log."""
    now = datetime.datetime.now(datetime.UTC)
    line = {"time": now.isoformat(timespec="milliseconds"), **fields}
    print(json.dumps(line), flush=True)
