"""Runs functions in a thread, for clients in turn, and few calls of each at a time."""

import asyncio
import concurrent.futures
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from documents.markup.translate_markup import (
    AlignmentRequest,
    Steps,
    TranslationRequest,
)
from serve.fair_queue import CLIENT, Tree, add_path, end_turn, first_key, remove_path
from serve.schemas import http_error

# Times as many calls of all clients together, since documents fill the memory.
ALL_CLIENTS = 8
# Semaphores, by function and client; `None` stands for all clients.
_slots = weakref.WeakValueDictionary()


class FairExecutor:
    """A thread that runs functions; the clients take turns."""

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
        return await asyncio.wrap_future(self.submit(function, *args))


# The event loop answers other requests while a thread works on documents or splits
# texts into sentences.
run_in_turn = FairExecutor("documents").run
split_in_turn = FairExecutor("sentences").run


def limit_calls(count: int) -> Callable:
    """Decorates a coroutine function of which a client runs so many at a time."""

    def decorate(function):
        @functools.wraps(function)
        async def run(*args):
            limits = {CLIENT.get(): count, None: ALL_CLIENTS * count}
            own, total = (
                _slots.setdefault((function, client), asyncio.Semaphore(limit))
                for client, limit in limits.items()
            )
            async with own, total:
                return await function(*args)

        return run

    return decorate


async def run_together(
    steps: list[Steps], translate: Callable, align: Callable
) -> list:
    """Runs the steps of documents together, with two coroutine functions."""
    done = [None] * len(steps)

    def resume(i, result):
        try:
            return steps[i].send(result)
        except StopIteration as stop:
            done[i] = stop.value

    results = dict.fromkeys(range(len(steps)))
    while results:
        try:
            requests = {
                i: await run_in_turn(resume, i, result) for i, result in results.items()
            }
        except ValueError as error:
            raise http_error(f"Invalid request: {error}") from None
        results = {}
        for kind, ask in ((TranslationRequest, translate), (AlignmentRequest, align)):
            inputs = {i: r.inputs for i, r in requests.items() if isinstance(r, kind)}
            if inputs:
                found = iter(await ask([x for some in inputs.values() for x in some]))
                for i, some in inputs.items():
                    results[i] = [next(found) for _ in some]
    return done
