"""Batches sentences of concurrent requests by similar length.

When the queue was empty, a batch waits a few milliseconds for more sentences;
otherwise it starts at once. The requests alternate: the first sentence of the
next request leads a batch, and queued sentences of similar length fill it. So a
short text does not wait for all of a long one, and there is little padding.
"""

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

from command_line.errors import UserError
from export.line_batching import BYTES_A_TOKEN
from export.line_batching import MAX_ROWS
from export.line_batching import MIN_TOKENS

WAIT = 0.005  # Seconds to wait for more sentences.
LIKE = 2  # Maximum difference of lengths in a batch, in tokens.


class BusyError(Exception):
    """The queue is full; the client should retry later."""


@dataclasses.dataclass(eq=False)
class QueuedItem:
    """An item in the queue.

    Attributes:
        question: Method of the model, from a list of things to as many
            results, and its further arguments.
        thing: A text, or a pair of texts.
        tokens: Int, estimated length.
        future: Future of the result. A client that is gone cancels it.
    """

    question: tuple
    thing: Any
    tokens: int
    future: asyncio.Future


class Batcher:
    """A queue of sentences, and the threads that run a model on batches of it.

    Args:
        in_flight: Int, number of concurrent batches.
        batch_tokens: Int, maximum tokens of a batch, padding included.
        max_waiting: Int, maximum length of the queue. A request that finds an
            empty queue may exceed it.
        observe: Function that receives the size of each batch.
    """

    def __init__(
        self,
        in_flight: int,
        batch_tokens: int,
        max_waiting: int,
        observe: Callable[[int], None],
    ):
        self._pool = concurrent.futures.ThreadPoolExecutor(in_flight)
        self._in_flight = in_flight
        self._batch_tokens, self._max_waiting = batch_tokens, max_waiting
        self._observe = observe
        self._requests = collections.deque()  # Lists of `QueuedItem`.
        self._filled = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self):
        """Runs batches while the context is open."""
        workers = [
            asyncio.create_task(self._work()) for _ in range(self._in_flight)
        ]
        try:
            yield self
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            self._pool.shutdown(wait=False)

    @property
    def queue_length(self) -> int:
        """Length of the queue."""
        return sum(
            not each.future.done()
            for request in self._requests
            for each in request
        )

    async def ask(self, question: Callable, things: list, *args) -> list:
        """Returns the results for things, in their order.

        Args:
            question: Method of a model.
            things: Texts or pairs of texts.
            *args: Further arguments of the method.

        Raises:
            BusyError: If the queue is full.
        """
        with self.submit(question, things, *args) as futures:
            return await asyncio.gather(*futures)

    @contextlib.contextmanager
    def submit(
        self, question: Callable, things: list, *args
    ) -> Iterator[list[asyncio.Future]]:
        """Yields futures of the results; cancels the pending ones at exit.

        Raises:
            BusyError: If the queue is full.
        """
        waiting = self.queue_length
        if waiting and waiting + len(things) > self._max_waiting:
            raise BusyError
        loop = asyncio.get_running_loop()
        request = [
            QueuedItem(
                (question, *args),
                thing,
                count_tokens(thing),
                loop.create_future(),
            )
            for thing in things
        ]
        self._requests.append(request)
        self._filled.set()
        futures = [each.future for each in request]
        try:
            yield futures
        finally:
            for future in futures:
                future.cancel()

    async def _work(self) -> None:
        while True:
            if not self._requests:
                self._filled.clear()
                await self._filled.wait()
                await asyncio.sleep(WAIT)
            if batch := self._take():
                self._observe(len(batch))
                await self._answer(batch)

    def _take(self) -> list[QueuedItem]:
        """Takes a batch from the queue; drops cancelled items."""
        left = [
            [each for each in request if not each.future.done()]
            for request in self._requests
        ]
        left = [request for request in left if request]
        self._requests.clear()
        if not left:
            return []
        batch = choose_batch(left, self._batch_tokens)
        taken = set(batch)
        first, *others = (
            [each for each in request if each not in taken] for request in left
        )
        self._requests.extend(filter(None, (*others, first)))
        return batch

    async def _answer(self, batch: list[QueuedItem]) -> None:
        (question, *args), things = batch[0].question, [b.thing for b in batch]
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(
                self._pool, question, things, *args
            )
        except Exception as error:
            # One item may be too long or need too much memory: run each one
            # alone. An error of a server concerns all.
            if len(batch) > 1 and not isinstance(error, UserError):
                for each in batch:
                    await self._answer([each])
                return
            answers = [error] * len(batch)
        for each, answer in zip(batch, answers, strict=True):
            if each.future.done():
                continue
            if isinstance(answer, Exception):
                each.future.set_exception(answer)
            else:
                each.future.set_result(answer)


def choose_batch(
    requests: list[list[QueuedItem]], batch_tokens: int
) -> list[QueuedItem]:
    """Returns the batch that the first item of the first request leads."""
    lead = requests[0][0]
    like = [
        each
        for request in requests
        for each in request
        if each is not lead
        and each.question == lead.question
        and max(each.tokens, lead.tokens)
        <= LIKE * min(each.tokens, lead.tokens)
    ]
    batch, longest = [lead], lead.tokens
    for each in sorted(like, key=lambda e: abs(e.tokens - lead.tokens)):
        longest = max(longest, each.tokens)
        if len(batch) == MAX_ROWS or longest * (len(batch) + 1) > batch_tokens:
            break
        batch.append(each)
    return batch


def count_tokens(thing: str | tuple[str, str]) -> int:
    """Estimates the tokens of a text, or of the longer text of a pair."""
    texts = (thing,) if isinstance(thing, str) else thing
    longest = max(len(text.encode()) for text in texts)
    return max(MIN_TOKENS, 1 + longest // BYTES_A_TOKEN)
