"""Runs functions in threads, for clients in turn, and notices a thread that hangs."""

import asyncio
import concurrent.futures
import functools
import threading
import time
from collections.abc import Callable
from typing import Any

from serve.fair_queue import CLIENT, Tree, add_path, end_turn, first_key, remove_path

HANG_SECONDS = 300  # Even a busy process finishes a batch or a document earlier.
HANG_TIMEOUTS = 4  # The same in timeouts of a server: a batch may need a few calls.
_started = {}  # The time at which each thread that is at work has begun.


async def run_in_thread(
    pool: concurrent.futures.Executor | None, function: Callable, *args
) -> Any:
    """Returns the result of a function that runs in a pool, or in the default one."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(pool, _call, function, *args)


def _call(function: Callable, *args) -> Any:
    thread = threading.get_ident()
    _started[thread] = time.monotonic()
    try:
        return function(*args)
    finally:
        del _started[thread]


def is_hung(timeout: float) -> bool:
    """Whether a thread runs one function for too long.

    A call of a model's server may take `timeout` seconds; 0 means there is none.
    """
    latest = time.monotonic() - max(HANG_SECONDS, HANG_TIMEOUTS * timeout)
    return any(started < latest for started in list(_started.values()))


class FairExecutor(concurrent.futures.Executor):
    """A thread that runs functions; the clients take turns.

    More threads would only take time from the event loop.
    """

    def __init__(self, name: str):
        self._thread = concurrent.futures.ThreadPoolExecutor(1, name)
        self._lock, self._jobs = threading.Lock(), Tree()  # Paths: client, job.

    def submit(self, function: Callable, *args) -> concurrent.futures.Future:
        future = concurrent.futures.Future()
        job = future, functools.partial(function, *args)
        with self._lock:
            add_path(self._jobs, (CLIENT.get(), job))
        self._thread.submit(self._run_next)
        return future

    def _run_next(self) -> None:
        with self._lock:
            client = first_key(self._jobs)
            future, function = job = first_key(self._jobs[client])
            remove_path(self._jobs, (client, job))
            end_turn(self._jobs, (client,))
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    async def run(self, function: Callable, *args) -> Any:
        """Returns the result of a function."""
        return await run_in_thread(self, function, *args)
