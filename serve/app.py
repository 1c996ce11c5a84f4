"""FastAPI application: routes, error responses, health, metrics and web page.

An error response is `{"error": "one line"}`, as in LibreTranslate.
"""

import asyncio
import contextlib
import logging
import pathlib
import signal
import sys
import threading
from collections.abc import Callable

import fastapi
import prometheus_client
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from command_line.errors import UserError
from documents.formats import FORMAT_OF_SUFFIX
from serve.access_control import AccessControl, read_keys
from serve.batching import BusyError, TooLargeError
from serve.languages import name_language
from serve.metrics import Metrics, RequestObserver
from serve.middleware import PublicAddress, RequestLimits
from serve.options import HttpOptions, LimitOptions
from serve.routes import add_analysis_routes, add_files, add_translation, make_post
from serve.translation_service import Models, TranslationService
from translate.report.explanation_page import read_with_shared

HEALTH_PATHS = ("/health", "/livez", "/readyz")
PAGE = pathlib.Path(__file__).with_name("page")
# The page loads nothing from other hosts and runs no inline script.
PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; connect-src 'self'; form-action 'self'; "
        "img-src data:; script-src 'self'; style-src 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def make_app(
    models: Models,
    http: HttpOptions,
    limits: LimitOptions,
    load_models: Callable | None = None,
) -> Callable:
    """Returns the service as an ASGI application, with models by pairs of codes.

    On SIGHUP, `load_models` returns them anew.

    Raises:
        UserError: If the file of keys holds no key.
    """
    # It would warn of every broken form.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    keys = read_keys(http.api_keys) if http.api_keys else {}
    access = AccessControl(keys, list(limits.rate_limit))
    metrics = Metrics()
    service = TranslationService(models, limits, metrics)

    def reload():
        # The keys hold also if the models cannot be read: one may be revoked.
        access.keys = read_keys(http.api_keys) if http.api_keys else {}
        if load_models:
            service.replace_models(load_models())

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with service.open(), reloading_on_hangup(reload):
            yield

    app = fastapi.FastAPI(
        title="Translation",
        openapi_url="/spec",
        docs_url=None,  # It would load files from elsewhere.
        redoc_url=None,
        lifespan=lifespan,
    )
    add_errors(app)
    add_monitoring(app, service)
    add_settings(app, service, bool(http.api_keys))
    post = make_post(app, access)
    add_translation(app, post, service)
    add_files(app, post, service)
    add_analysis_routes(post, service)
    add_pages(app)
    unlimited = {*HEALTH_PATHS, *(http.url_prefix + path for path in HEALTH_PATHS)}
    limited = RequestLimits(app, limits.byte_limit, unlimited)
    observed = RequestObserver(limited, metrics.observe_request)
    public = PublicAddress(observed, http.url_prefix, http.public_url)
    return ProxyHeadersMiddleware(public, list(http.trusted_proxies))


@contextlib.asynccontextmanager
async def reloading_on_hangup(reload: Callable):
    """Calls `reload` in a thread on SIGHUP, once at a time; an error is logged."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread receives signals.
        return
    hangup = asyncio.Event()

    async def wait():
        while await hangup.wait():
            hangup.clear()
            try:
                await asyncio.to_thread(reload)
                print("reloaded", file=sys.stderr, flush=True)
            except Exception as error:
                print(f"not reloaded: {error}", file=sys.stderr, flush=True)

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, hangup.set)
    waiting = loop.create_task(wait())
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        waiting.cancel()


def add_errors(app: fastapi.FastAPI) -> None:
    """Adds handlers that return errors in LibreTranslate's form."""

    def respond(status, message, headers=None):
        return JSONResponse({"error": message}, status, headers)

    @app.exception_handler(HTTPException)
    def refused(_, error):
        return respond(error.status_code, error.detail, error.headers)

    @app.exception_handler(BusyError)
    def busy(*_):
        message = "Slowdown: too many sentences wait for a translation"
        return respond(429, message, {"Retry-After": "1"})

    @app.exception_handler(TooLargeError)
    def too_large(_, error):
        return respond(400, f"Invalid request: {error}")

    @app.exception_handler(UserError)
    def unavailable(_, error):
        # The address and the message of a server go to the log only.
        print(error, file=sys.stderr)
        return respond(502, "the model's server does not answer as it should")

    @app.exception_handler(Exception)
    def failed(*_):  # Uvicorn logs the traceback.
        return respond(500, "Cannot translate text: an error of the service")


def add_monitoring(app: fastapi.FastAPI, service: TranslationService) -> None:
    """Adds the routes of load balancers and of Prometheus."""

    @app.get("/livez")
    async def livez():
        if not service.is_alive():
            raise HTTPException(503, "a worker has ended")
        return {"status": "ok"}

    @app.get("/health")
    @app.get("/readyz")
    async def health():
        await livez()
        if silent := await service.find_unresponsive():
            names = ", ".join(silent)
            raise HTTPException(503, f"the model of {names} does not answer")
        return {"status": "ok"}

    @app.get("/metrics")
    async def metrics():
        kind = prometheus_client.CONTENT_TYPE_LATEST
        return Response(service.metrics.render(), media_type=kind)


def add_settings(
    app: fastapi.FastAPI, service: TranslationService, needs_key: bool
) -> None:
    """Adds the routes that describe the service to LibreTranslate's clients."""
    source, target = (
        {"code": code, "name": name_language(code)} for code in service.pairs[0]
    )

    @app.get("/languages")
    async def languages():
        return service.languages()

    @app.get("/frontend/settings")
    async def settings():
        return {
            "charLimit": service.limits.char_limit,
            "batchLimit": service.limits.batch_limit,
            "frontendTimeout": 500,
            "apiKeys": needs_key,
            "keyRequired": needs_key,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": list(FORMAT_OF_SUFFIX),
            "language": {"source": source, "target": target},
            "pairs": service.features(),
        }


def add_pages(app: fastapi.FastAPI) -> None:
    """Adds the web page, its style and its script."""

    def add(path, content, kind):
        @app.get(path, include_in_schema=False)
        async def send():
            return Response(content, media_type=kind, headers=PAGE_HEADERS)

    add("/", (PAGE / "page.html").read_bytes(), "text/html")
    add("/page.css", read_with_shared(PAGE / "page.css"), "text/css")
    add("/page.js", read_with_shared(PAGE / "page.js"), "text/javascript")
