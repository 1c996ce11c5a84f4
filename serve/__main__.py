"""Serves translations over HTTP: LibreTranslate's API and a web page.

By default it listens on this machine only. After SIGTERM it answers the pending
requests and exits. On SIGHUP it reads the models, the glossaries and the keys anew.
"""

import contextlib
import functools
import os
import resource
import socket
from collections.abc import Callable

import tensorflow as tf
import uvicorn

from command_line.cpu_count import count_processors
from command_line.errors import exit_on_user_error
from command_line.options import CommandParser, add_options, read_options
from serve.app import make_app
from serve.languages import load_pairs
from serve.middleware import TimeoutProtocol, bind
from serve.options import ServeOptions

DRAIN_SECONDS = 25  # Kubernetes kills after 30.
# Variables with which users set TensorFlow's threads; then these are kept.
THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


def parse_options(argv: list[str] | None = None) -> ServeOptions:
    parser = CommandParser(prog="python -m serve", description=__doc__)
    add_options(parser, ServeOptions)
    return read_options(parser.parse_args(argv), ServeOptions)


def run(options: ServeOptions) -> None:
    """Serves until SIGTERM or SIGINT."""
    http = options.http
    # The socket is bound before the models are loaded, since the port may be
    # taken; until it listens, it refuses connections.
    with contextlib.closing(bind(http.host, http.port)) as listener:
        set_threads()
        allow_connections()
        load = make_loader(options)
        app = make_app(load(), http, options.limits, load)
        listener.listen()
        announce(options, listener)
        uvicorn.Server(make_config(app)).run(sockets=[listener])


def make_loader(options: ServeOptions) -> Callable:
    """Returns a function that loads the models and the glossaries."""
    terms = options.glossary or (), options.match_case
    return functools.partial(load_pairs, options.pair, options.client, *terms)


def make_config(app: Callable) -> uvicorn.Config:
    """Returns the configuration of a server that shuts down gracefully."""
    return uvicorn.Config(
        app,
        http=TimeoutProtocol,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # `make_app` has them read.
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


def set_threads() -> None:
    """Has batches computed in one thread each, since threads that share one wait."""
    if any(name in os.environ for name in THREADS):
        return
    with contextlib.suppress(RuntimeError):  # TensorFlow has started already.
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(count_processors())


def allow_connections() -> None:
    """Raises the limit of open files, which connections are."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS has another limit.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def announce(options: ServeOptions, listener: socket.socket) -> None:
    """Prints the language pairs and the address."""
    for source, target, _ in options.pair:
        print(f"{source} to {target}")
    host, port = listener.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    print(f"on http://{host}:{port}{options.http.url_prefix}/", flush=True)


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_options(argv))


if __name__ == "__main__":
    main()
