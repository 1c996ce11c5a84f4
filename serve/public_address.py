"""ASGI middleware: scheme, host and client of requests that proxies forward."""

import re
import urllib.parse
from collections.abc import Callable

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

HOST = re.compile(r"[\w.-]+(:\d+)?|\[[\da-fA-F:.]+\](:\d+)?", re.ASCII)


class PublicAddress(ProxyHeadersMiddleware):
    """ASGI middleware that decides on which address links are based.

    The `Host` header is what any client writes, so it is replaced: by the host
    of the public URL, else by `X-Forwarded-Host` of a trusted proxy, else by
    the address at which the connection arrived. Uvicorn's middleware reads
    `X-Forwarded-For` and `X-Forwarded-Proto` of trusted proxies.

    The application may be reached under the prefix, or under the root, by a
    proxy that removes the prefix.

    Args:
        app: The ASGI application.
        prefix: String, path of all links, such as `"/translate"`, or `""`.
        public_url: String, scheme and host of all links, or `None`.
        trusted: List of addresses and networks of proxies.
    """

    def __init__(
        self, app: Callable, prefix: str, public_url: str | None, trusted: list[str]
    ):
        super().__init__(app, trusted_hosts=trusted)
        self._prefix = prefix
        self._public = public_url and urllib.parse.urlsplit(public_url)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        host = (b"host", self._find_host(scope).encode())
        dropped = [b"host"]
        if self._public:
            scope["scheme"] = self._public.scheme
            dropped.append(b"x-forwarded-proto")
        kept = [pair for pair in scope["headers"] if pair[0] not in dropped]
        scope["headers"] = [*kept, host]
        scope["root_path"] = self._prefix
        await super().__call__(scope, receive, send)

    def _find_host(self, scope: dict) -> str:
        if self._public:
            return self._public.netloc
        client = scope["client"] and scope["client"][0]
        if client in self.trusted_hosts:
            headers = dict(scope["headers"])  # The last one of a name.
            forwarded = headers.get(b"x-forwarded-host", b"").decode("latin1")
            # The last one is that of the nearest proxy.
            host = forwarded.rpartition(",")[2].strip()
            if HOST.fullmatch(host):
                return host
        host, port = scope["server"]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
