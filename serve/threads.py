"""Runs functions in a thread, for clients in turn."""

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Callable
from typing import Any

from serve.fair_queue import CLIENT, Tree, add_path, end_turn, first_key, remove_path


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
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self, function, *args)
