"""Translates documents, whose sentences are queued as any others.

The work on the documents themselves runs in a thread, so that the event loop
answers other requests meanwhile.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable
from typing import Any

from documents.markup.translate_markup import (
    AlignmentRequest,
    Steps,
    TranslationRequest,
)
from serve.schemas import http_error

# One thread: more of them would only take time from the event loop.
_thread = concurrent.futures.ThreadPoolExecutor(1, "markup")


async def translate_documents(
    steps: list[Steps], translate: Callable, align: Callable
) -> list:
    """Translates documents together; returns the results of their steps.

    Args:
        steps: Those of each, such as `markup_steps` and `translation_steps`.
        translate: Coroutine function from sentences to pairs: the translation,
            and whether it was cut.
        align: Coroutine function from pairs of sentences to word alignments.

    Raises:
        HTTPException: If a document cannot be parsed.
    """
    done = [None] * len(steps)
    results = dict.fromkeys(range(len(steps)))
    while results:
        try:
            requests = await run_in_thread(resume, steps, results, done)
        except ValueError as error:
            raise http_error(f"Invalid request: {error}") from None
        results = await answer(requests, TranslationRequest, translate)
        results |= await answer(requests, AlignmentRequest, align)
    return done


async def run_in_thread(function: Callable, *args) -> Any:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_thread, function, *args)


def resume(
    steps: list[Steps], results: dict[int, list | None], done: list
) -> dict[int, TranslationRequest | AlignmentRequest]:
    """Sends results to documents.

    Args:
        steps: The documents.
        results: The results of the requests of some, by index.
        done: List that the translated documents are put into.

    Returns:
        The next request of each document that has one, by index.
    """
    requests = {}
    for i, result in results.items():
        try:
            requests[i] = steps[i].send(result)
        except StopIteration as stop:
            done[i] = stop.value
    return requests


async def answer(
    requests: dict[int, TranslationRequest | AlignmentRequest],
    kind: type,
    ask: Callable,
) -> dict[int, list]:
    """Returns the results of the requests of one kind, by index."""
    requests = {i: r for i, r in requests.items() if isinstance(r, kind)}
    inputs = {
        i: r.texts if kind is TranslationRequest else list(zip(*r, strict=True))
        for i, r in requests.items()
    }
    if not inputs:
        return {}
    found = iter(await ask([each for some in inputs.values() for each in some]))
    return {i: [next(found) for _ in some] for i, some in inputs.items()}
