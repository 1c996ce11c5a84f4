"""Serves translations over HTTP: LibreTranslate's API and a web page.

Needs `pip install '.[web]'`. By default it listens on this machine only. After
SIGTERM it answers the pending requests and exits. On SIGHUP it reads the models
and the file of keys anew.
"""

import argparse
import contextlib
import functools

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from command_line.options import add_options
from command_line.options import read_options

try:
    import uvicorn

    from export.serve.app import make_app
    from export.serve.languages import load_pairs
    from export.serve.middleware import TimeoutProtocol
    from export.serve.middleware import listen
    from export.serve.options import ServeOptions
except ImportError as error:
    with exit_on_user_error():
        raise UserError(
            f"python -m export.serve needs `pip install '.[web]'`. "
            f"Received: {error}"
        ) from None

CONNECTIONS = 500  # Further connections get status 503.
DRAIN_SECONDS = 25  # Kubernetes kills after 30.


def parse_options(argv: list[str] | None = None) -> ServeOptions:
    parser = argparse.ArgumentParser(
        prog="python -m export.serve", description=__doc__
    )
    add_options(parser, ServeOptions)
    return read_options(parser.parse_args(argv), ServeOptions)


def make_server(app) -> uvicorn.Server:
    """Returns a Uvicorn server that shuts down gracefully."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=TimeoutProtocol,
            ws="none",
            log_level="error",
            access_log=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
    )


def run(options: ServeOptions) -> None:
    http = options.http
    # Bind before the models are loaded, which is slow.
    with contextlib.closing(listen(http.host, http.port)) as listener:
        load = functools.partial(load_pairs, options.pair, options.client)
        models = load()
        server = make_server(make_app(models, http, options.limits, load))
        for source, target in models:
            print(f"{source} to {target}")
        host, port = listener.getsockname()[:2]
        host = f"[{host}]" if ":" in host else host
        print(f"on http://{host}:{port}/", flush=True)
        server.run(sockets=[listener])


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_options(argv))


if __name__ == "__main__":
    main()
