"""FastAPI application: routes, error responses, health, metrics and web page.

An error response is `{"error": "one line"}`, as in LibreTranslate.
"""

import contextlib
import hmac
import pathlib
import sys
from collections.abc import Callable

import fastapi
import prometheus_client
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from command_line.errors import UserError
from documents.formats import FORMAT_OF_SUFFIX
from serve.access_control import AccessControl
from serve.access_log import AccessLog
from serve.api_keys import ApiKeys
from serve.batching import BusyError, TooLongError
from serve.documentation import add_documentation
from serve.languages import name_language
from serve.metrics import Metrics
from serve.middleware import RequestLimits
from serve.options import HttpOptions, LimitOptions
from serve.public_address import PublicAddress
from serve.routes import add_analysis_routes, add_files, add_translation
from serve.sighup_reload import Reloader
from serve.translation_service import TranslationService
from translate.runtime.runtime import Runtime

HEALTH_PATHS = ("/health", "/livez", "/readyz")
PAGE = pathlib.Path(__file__).with_name("page")
# The page loads nothing from other hosts and runs no inline script.
PAGE_POLICY = (
    "default-src 'none'; connect-src 'self'; form-action 'self'; "
    "img-src data:; script-src 'self'; style-src 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


def make_app(
    models: dict[tuple[str, str], Runtime],
    http: HttpOptions,
    limits: LimitOptions,
    load_models: Callable | None = None,
) -> Callable:
    """Returns the service as an ASGI application.

    Args:
        models: Dict from pairs of codes to models.
        http: Address, API keys and CORS.
        limits: Limits on the size of requests.
        load_models: Function that returns the models anew, for SIGHUP.

    Raises:
        UserError: If the file of keys holds no key.
    """
    keys = ApiKeys(http.api_keys)
    access = AccessControl(keys, list(limits.rate_limit))
    metrics = Metrics()
    service = TranslationService(models, limits, metrics)

    reloader = Reloader(keys, service, load_models)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with service.open(), reloader.on_hangup():
            yield

    app = fastapi.FastAPI(
        title="Translation",
        docs_url=None,  # It would load files from elsewhere.
        redoc_url=None,
        lifespan=lifespan,
    )
    if http.cors_origin:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=http.cors_origin,
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type"],
        )
    add_errors(app)
    add_public_routes(app, service, metrics, http, limits)
    add_translation(app, service, access)
    add_files(app, service, access)
    add_analysis_routes(app, service, access)
    add_page(app)
    add_documentation(app)
    unlimited = (
        prefix + path for prefix in ("", http.url_prefix) for path in HEALTH_PATHS
    )
    limited = RequestLimits(app, limits.byte_limit, frozenset(unlimited))
    logged = AccessLog(limited, metrics.observe_request, http.access_log)
    return PublicAddress(
        logged, http.url_prefix, http.public_url, list(http.trusted_proxies)
    )


def add_errors(app: fastapi.FastAPI) -> None:
    """Adds handlers that return errors in LibreTranslate's form."""

    def respond(status, message, headers=None):
        return JSONResponse({"error": message}, status, headers)

    @app.exception_handler(HTTPException)
    def refused(_, error):
        return respond(error.status_code, error.detail, error.headers)

    @app.exception_handler(BusyError)
    def busy(*_):
        return respond(
            429,
            "Slowdown: too many sentences wait for a translation",
            {"Retry-After": "1"},
        )

    @app.exception_handler(TooLongError)
    def too_long(_, error):
        return respond(400, str(error))

    @app.exception_handler(UserError)
    def unavailable(_, error):
        # The address and the message of a server go to the log only.
        print(error, file=sys.stderr)
        return respond(502, "the model's server does not answer as it should")

    @app.exception_handler(Exception)
    def failed(request, _):
        # Uvicorn logs the traceback.
        print(f"request {request.state.request_id} failed", file=sys.stderr)
        return respond(500, "Cannot translate text: an error of the service")


def add_health(app: fastapi.FastAPI, service: TranslationService) -> None:
    """Adds the routes of a load balancer: is the process ready, and alive?"""

    @app.get("/health")
    @app.get("/readyz")
    async def health():
        if silent := await service.find_unresponsive():
            names = ", ".join(silent)
            raise HTTPException(503, f"the model of {names} does not answer")
        return {"status": "ok"}

    @app.get("/livez")
    async def livez():
        if not service.is_alive():
            raise HTTPException(503, "a worker has ended")
        return {"status": "ok"}


def add_public_routes(
    app: fastapi.FastAPI,
    service: TranslationService,
    metrics: Metrics,
    http: HttpOptions,
    limits: LimitOptions,
) -> None:
    """Adds the routes that need no API key."""
    add_health(app, service)

    @app.get("/languages")
    async def languages():
        return service.languages()

    token = read_expected_header(http.metrics_token)

    @app.get("/metrics")
    async def render_metrics(request: fastapi.Request):
        given = request.headers.get("authorization", "")
        if token and not hmac.compare_digest(given.encode("latin-1"), token):
            challenge = {"WWW-Authenticate": "Bearer"}
            raise HTTPException(401, "Unauthorized", challenge)
        return Response(
            metrics.render(), media_type=prometheus_client.CONTENT_TYPE_LATEST
        )

    source, target = (
        {"code": code, "name": name_language(code)} for code in service.pairs[0]
    )

    @app.get("/frontend/settings")
    async def settings():
        return {
            "charLimit": limits.char_limit,
            "batchLimit": limits.batch_limit,
            "frontendTimeout": 500,
            "apiKeys": bool(http.api_keys),
            "keyRequired": bool(http.api_keys),
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": list(FORMAT_OF_SUFFIX),
            "language": {"source": source, "target": target},
            "pairs": service.features(),
        }


def read_expected_header(path: pathlib.Path | None) -> bytes | None:
    """Returns the header that a file's token is sent in, or `None`."""
    return path and b"Bearer " + path.read_bytes().strip()


def add_page(app: fastapi.FastAPI) -> None:
    """Adds the web page, with the files of `page/`."""
    headers = {
        "Content-Security-Policy": PAGE_POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }

    def add(path, name, kind):
        content = (PAGE / name).read_bytes()

        @app.get(path, include_in_schema=False)
        async def send():
            return Response(content, media_type=kind, headers=headers)

    add("/", "page.html", "text/html")
    add("/page.css", "page.css", "text/css")
    add("/page.js", "page.js", "text/javascript")
