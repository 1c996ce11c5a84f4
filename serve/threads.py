"""Runs functions in threads, and notices a thread that hangs."""

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable
from typing import Any

HANG_SECONDS = 300  # Even a busy process finishes a batch or a document earlier.
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


def is_hung() -> bool:
    """Whether a thread has run one function for more than `HANG_SECONDS`."""
    latest = time.monotonic() - HANG_SECONDS
    return any(started < latest for started in list(_started.values()))
