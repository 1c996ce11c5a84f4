"""ASGI application that responds with the id of its process."""

import asyncio
import os


async def app(scope, receive, send):
    """Responds; the body of `/slow` comes a second after its head."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/slow":
        await asyncio.sleep(1)
    body = str(os.getpid()).encode()
    await send({"type": "http.response.body", "body": body})
