"""Translates documents, whose sentences are queued as any others.

The work on the documents themselves runs in a thread, so that the event loop
answers other requests meanwhile.
"""

import concurrent.futures
from collections.abc import Callable

from documents.markup.translate_markup import (
    AlignmentRequest,
    Steps,
    TranslationRequest,
)
from serve.schemas import http_error
from serve.threads import run_in_thread

# One thread: more of them would only take time from the event loop.
MARKUP_POOL = concurrent.futures.ThreadPoolExecutor(1, "markup")


async def run_together(
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

    def resume(results):
        """Returns the next request of each document that has one, by index."""
        requests = {}
        for i, result in results.items():
            try:
                requests[i] = steps[i].send(result)
            except StopIteration as stop:
                done[i] = stop.value
        return requests

    results = dict.fromkeys(range(len(steps)))
    while results:
        try:
            requests = await run_in_thread(MARKUP_POOL, resume, results)
        except ValueError as error:
            raise http_error(f"Invalid request: {error}") from None
        results = {}
        for kind, ask in ((TranslationRequest, translate), (AlignmentRequest, align)):
            inputs = {
                i: request.texts
                if kind is TranslationRequest
                else list(zip(*request, strict=True))
                for i, request in requests.items()
                if isinstance(request, kind)
            }
            if inputs:
                found = iter(await ask([x for some in inputs.values() for x in some]))
                for i, some in inputs.items():
                    results[i] = [next(found) for _ in some]
    return done
