"""ASGI application that responds with the id of its process."""

import asyncio
import os


async def app(scope, receive, send):
    """Responds; after a second to `/slow`."""
    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = str(os.getpid()).encode()
    await send({"type": "http.response.body", "body": body})
