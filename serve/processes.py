"""Runs the service in one process, or in several behind one port."""

import contextlib
import functools
import os
import resource
import socket
import sys
import tempfile
from collections.abc import Callable

import tensorflow as tf
import uvicorn
from prometheus_client import multiprocess
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from command_line.cpu_count import count_processors
from command_line.errors import exit_on_user_error
from serve.app import make_app
from serve.file_store import FOLDER_VARIABLE
from serve.languages import load_pairs
from serve.metrics import SHARED_FOLDER
from serve.middleware import TimeoutProtocol
from serve.options import ServeOptions

DRAIN_SECONDS = 25  # Kubernetes kills after 30.
LOAD_SECONDS = 600  # A process that does not answer for so long is replaced.
# Variables with which users set TensorFlow's threads.
THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


def make_config(app: Callable, **kwargs) -> uvicorn.Config:
    """Returns the configuration of a server that shuts down gracefully."""
    return uvicorn.Config(
        app,
        http=TimeoutProtocol,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # `PublicAddress` reads them.
        timeout_graceful_shutdown=DRAIN_SECONDS,
        **kwargs,
    )


def run_process(options: ServeOptions, listener: socket.socket) -> None:
    """Serves in this process until SIGTERM."""
    app = load_app(options)
    listener.listen()
    announce(options, listener)
    uvicorn.Server(make_config(app)).run(sockets=[listener])


def run_processes(options: ServeOptions, listener: socket.socket) -> None:
    """Serves in several processes until SIGTERM; SIGHUP replaces each in turn.

    Each loads its own models. A supervisor replaces one that has ended.
    """
    config = make_config(
        functools.partial(load_app_or_exit, options),
        factory=True,
        workers=options.http.workers,
        timeout_worker_healthcheck=LOAD_SECONDS,
    )
    # They start TensorFlow without its log, too: see `start_tensorflow`.
    sys.argv[0] = "-m"
    with (
        tempfile.TemporaryDirectory() as metrics,
        tempfile.TemporaryDirectory() as files,
    ):
        os.environ[SHARED_FOLDER] = metrics
        os.environ[FOLDER_VARIABLE] = files
        ready = functools.partial(announce, options, listener)
        supervisor = Supervisor(config, [listener], ready)
        supervisor.run()
    if any(p.exitcode == STARTUP_FAILURE for p in supervisor.processes):
        raise SystemExit(2)


class Supervisor(Multiprocess):
    """Uvicorn's supervisor, which announces that all processes are ready.

    It reports each process that has ended and is replaced.
    """

    def __init__(self, config, sockets, announce: Callable):
        super().__init__(config, sockets)
        self._announce = announce

    def init_processes(self):
        super().init_processes()
        while not all(process.is_ready(1) for process in self.processes):
            self.handle_signals()
            has_ended = [not p.process.is_alive() for p in self.processes]
            if self.should_exit.wait(0.1) or any(has_ended):
                return
        self._announce()

    def keep_subprocess_alive(self):
        for old in self._replace(super().keep_subprocess_alive):
            print(
                f"process {old.pid} has ended with status {old.exitcode}; "
                "another one starts",
                file=sys.stderr,
                flush=True,
            )

    def restart_all(self):
        self._replace(super().restart_all)

    def _replace(self, replace: Callable) -> list:
        """Runs a function; returns the processes that it has replaced."""
        before = list(self.processes)
        replace()
        replaced = [old for old in before if old not in self.processes]
        for old in replaced:
            multiprocess.mark_process_dead(old.pid)
        return replaced


def load_app_or_exit(options: ServeOptions) -> Callable:
    """Returns the application, in a process that `Supervisor` has started."""
    try:
        with exit_on_user_error():
            return load_app(options)
    except SystemExit:
        sys.exit(STARTUP_FAILURE)  # The supervisor does not try again.


def load_app(options: ServeOptions) -> Callable:
    """Loads the models; returns the ASGI application."""
    set_threads(options.http.workers)
    allow_connections()
    load = functools.partial(load_pairs, options.pair, options.client)
    return make_app(load(), options.http, options.limits, load)


def set_threads(processes: int) -> None:
    """Lets TensorFlow compute several batches at a time, each in one thread.

    Threads that share a batch wait for each other. The user's own setting of
    TensorFlow's threads is kept.
    """
    if any(name in os.environ for name in THREADS):
        return
    with contextlib.suppress(RuntimeError):  # TensorFlow has started already.
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(
            max(1, count_processors() // processes)
        )


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
