"""Translates documents, whose sentences are queued as any others.

The work on the documents themselves runs in a thread, so that the event loop
answers other requests meanwhile. The clients take turns, with a document at a time.
"""

import asyncio
import functools
import weakref
from collections.abc import Callable

from documents.markup.translate_markup import (
    AlignmentRequest,
    Steps,
    TranslationRequest,
)
from serve.fair_queue import CLIENT
from serve.schemas import http_error
from serve.threads import FairExecutor

# Of a .docx file. Reading and writing one takes up to three seconds and, while its
# sentences are translated, 200 MiB.
MAX_TAGS = 150_000
# Requests of a client at a time; others wait.
MAX_CLIENT_FILES = 2
MAX_HTML_REQUESTS = 32
ALL_CLIENTS = 8  # Times as many of all clients together.

run_in_turn = FairExecutor("documents").run
# Semaphores, by function and client; `None` stands for all clients.
_slots = weakref.WeakValueDictionary()


def limit_calls(count: int) -> Callable:
    """Decorates a coroutine function of which a client runs so many at a time.

    All clients together run at most `ALL_CLIENTS` times as many, since documents
    fill the memory.
    """

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
    """Translates documents together; returns the results of their steps.

    `translate` and `align` are coroutine functions, from sentences to `Translation`s
    and from pairs of sentences to word alignments.
    """
    done = [None] * len(steps)

    def resume(i, result):
        """Returns the next request of a document, or `None` if it is done."""
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
            inputs = {
                i: request.inputs
                for i, request in requests.items()
                if isinstance(request, kind)
            }
            if inputs:
                found = iter(await ask([x for some in inputs.values() for x in some]))
                for i, some in inputs.items():
                    results[i] = [next(found) for _ in some]
    return done
