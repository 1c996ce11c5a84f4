"""Batches sentences of concurrent requests by similar length.

When the queue was empty, a batch waits a few milliseconds for more sentences;
otherwise it starts at once. The requests alternate: the first sentence of the
next request leads a batch, and queued sentences of similar length fill it. So a
short text does not wait for all of a long one, and there is little padding.

A long request does not slow down short ones: of several workers one is left to
short requests, whose batches hold no sentences of long ones.
"""

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator
from typing import Any

from command_line.errors import UserError
from serve.metrics import ModelMetrics
from translate.line_batching import BYTES_A_TOKEN, MIN_TOKENS
from translate.runtime.bounded_batches import MAX_ROWS
from translate.runtime.tf_serving import RefusedRequestError

WAIT = 0.005  # Seconds to wait for more sentences.
MAX_BATCH_LENGTH_RATIO = 2  # Of the tokens of any two items in a batch.
SHORT = 0.25  # Maximum size of a short request, in batches.
MIN_LENGTH_LIMIT = 16  # Tokens up to which no sentence is too long.
# A model that has translated something in these seconds is not asked again.
FRESH_SECONDS = 10
PROBE_SECONDS = 5  # Timeout of a translation that checks a model.

logger = logging.getLogger(__name__)


class BusyError(Exception):
    """The queue is full; the client should retry later."""


class TooLongError(ValueError):
    """A sentence is longer than a batch."""


@dataclasses.dataclass(eq=False)
class QueuedItem:
    """An item in the queue.

    Attributes:
        call: Method of the model, from a list of texts to as many results,
            and its further arguments.
        text: A text, or a pair of texts.
        tokens: Int, estimated length.
        future: Future of the result. A client that is gone cancels it.
        is_short: Bool, whether its request is short.
    """

    call: tuple
    text: Any
    tokens: int
    future: asyncio.Future
    is_short: bool


class Batcher:
    """A queue of sentences, and the threads that run a model on batches of it.

    Args:
        in_flight: Int, number of concurrent batches.
        batch_tokens: Int, maximum tokens of a batch, padding included.
        max_waiting: Int, maximum length of the queue. A request that finds an
            empty queue may exceed it.
        metrics: `ModelMetrics` to update.
    """

    def __init__(
        self, in_flight: int, batch_tokens: int, max_waiting: int, metrics: ModelMetrics
    ):
        self._pool = concurrent.futures.ThreadPoolExecutor(in_flight)
        # Batches of long requests that may start.
        self._long_slots = max(1, in_flight - 1)
        self._in_flight = in_flight
        self._batch_tokens, self._max_waiting = batch_tokens, max_waiting
        self._max_tokens = max(batch_tokens, MIN_LENGTH_LIMIT)
        self._metrics = metrics
        self._requests = collections.deque()  # Lists of `QueuedItem`.
        self._changed = asyncio.Event()
        self._workers = []
        self._answered = -FRESH_SECONDS  # Time of the last result.
        self._probe = None

    @contextlib.asynccontextmanager
    async def running(self):
        """Runs batches while the context is open."""
        self._workers = [
            asyncio.create_task(self._work()) for _ in range(self._in_flight)
        ]
        try:
            yield self
        finally:
            for worker in self._workers:
                worker.cancel()
            await asyncio.gather(*self._workers, return_exceptions=True)
            self._pool.shutdown(wait=False)

    @property
    def queue_length(self) -> int:
        """Length of the queue."""
        return sum(
            not each.future.done() for request in self._requests for each in request
        )

    @property
    def max_bytes(self) -> int:
        """Maximum size of a sentence."""
        return BYTES_A_TOKEN * self._max_tokens - 1

    @property
    def is_alive(self) -> bool:
        """Whether all workers run."""
        return not any(worker.done() for worker in self._workers)

    async def is_responsive(self, method: Callable, text: Any) -> bool:
        """Returns whether the workers live, and answer in good time.

        If there was no result for `FRESH_SECONDS`, it puts `text` at the head
        of the queue and waits for its result for `PROBE_SECONDS`.
        """
        now = asyncio.get_running_loop().time
        if not self.is_alive:
            return False
        if now() < self._answered + FRESH_SECONDS:
            return True
        if self._probe is None or self._probe.done():
            item = self._make_item((method,), text, is_short=True)
            self._requests.appendleft([item])
            self._changed.set()
            self._probe = item.future
        await asyncio.wait([self._probe], timeout=PROBE_SECONDS)
        return self._probe.done() and not self._probe.exception()

    async def run(
        self, method: Callable, texts: list, *args, is_admitted: bool = False
    ) -> list:
        """Returns the results of texts, in their order.

        Args:
            method: Method of a model.
            texts: Texts or pairs of texts.
            *args: Further arguments of the method.
            is_admitted: Whether the texts belong to a request of which other
                texts have been queued before; then no limit applies.

        Raises:
            BusyError: If the queue is full.
            TooLongError: If a text is longer than a batch.
        """
        with self.submit(method, texts, *args, is_admitted=is_admitted) as futures:
            return await asyncio.gather(*futures)

    @contextlib.contextmanager
    def submit(
        self, method: Callable, texts: list, *args, is_admitted: bool = False
    ) -> Iterator[list[asyncio.Future]]:
        """Yields futures of the results; cancels the pending ones at exit.

        The arguments and errors are those of `run`.
        """
        sizes = [count_tokens(text) for text in texts]
        if not is_admitted:
            self._check(sizes)
        is_short = sum(sizes) <= SHORT * self._batch_tokens
        request = [self._make_item((method, *args), text, is_short) for text in texts]
        self._requests.append(request)
        self._changed.set()
        self._note_length()
        futures = [each.future for each in request]
        try:
            yield futures
        finally:
            for future in futures:
                future.cancel()
            self._note_length()

    def _check(self, sizes: list[int]) -> None:
        """Checks that there is room for items of these sizes in tokens."""
        if max(sizes, default=0) > self._max_tokens:
            raise TooLongError(
                f"Invalid request: a sentence must have at most {self.max_bytes} bytes"
            )
        waiting = self.queue_length
        if waiting and waiting + len(sizes) > self._max_waiting:
            raise BusyError

    def _make_item(self, call: tuple, text: Any, is_short: bool) -> QueuedItem:
        future = asyncio.get_running_loop().create_future()
        return QueuedItem(call, text, count_tokens(text), future, is_short)

    def _note_length(self) -> None:
        self._metrics.queue_length.set(self.queue_length)

    async def _work(self) -> None:
        while True:
            try:
                await self._work_once()
            except Exception:
                # A bug. The other requests must not wait for ever.
                self._metrics.errors.inc()
                logger.exception("a worker failed; it continues")

    async def _work_once(self) -> None:
        """Runs the next batch, or waits until there may be one."""
        was_empty = not self._requests
        batch = self._take()
        if not batch:
            self._changed.clear()
            await self._changed.wait()
            if was_empty:
                await asyncio.sleep(WAIT)
            return
        is_long = not batch[0].is_short
        self._long_slots -= is_long
        try:
            self._metrics.batch_sizes.observe(len(batch))
            await self._answer(batch)
        finally:
            self._long_slots += is_long
            self._changed.set()
            for each in batch:
                if not each.future.done():
                    each.future.set_exception(RuntimeError("no result"))

    def _take(self) -> list[QueuedItem]:
        """Takes a batch from the queue; drops cancelled items.

        Returns:
            The items; none if the queue is empty, or if it has only long
            requests and as many batches of these run as may.
        """
        left = [
            [each for each in request if not each.future.done()]
            for request in self._requests
        ]
        left = [request for request in left if request]
        self._requests = collections.deque(left)
        ready = [r for r in left if r[0].is_short or self._long_slots]
        if not ready:
            return []
        batch = choose_batch(ready, self._batch_tokens)
        taken = set(batch)
        self._requests.remove(ready[0])
        self._requests.append(ready[0])
        self._requests = collections.deque(
            rest
            for request in self._requests
            if (rest := [each for each in request if each not in taken])
        )
        self._note_length()
        return batch

    async def _answer(self, batch: list[QueuedItem]) -> None:
        (method, *args), texts = batch[0].call, [b.text for b in batch]
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(self._pool, method, texts, *args)
        except Exception as error:
            # One item may be too long or need too much memory: run each one
            # alone. A server that does not answer concerns all.
            is_refused = isinstance(error, RefusedRequestError)
            is_of_item = is_refused or not isinstance(error, UserError)
            if len(batch) > 1 and is_of_item:
                for each in batch:
                    if not each.future.done():  # Its client may have gone.
                        await self._answer([each])
                return
            self._metrics.errors.inc()
            if not isinstance(error, UserError):
                logger.error("a model failed", exc_info=error)
            answers = [error] * len(batch)
        else:
            self._answered = loop.time()
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
    """Returns the batch that the first item of the first request leads.

    Items of long requests do not join one of a short request, nor the reverse.
    """
    lead = requests[0][0]
    like = [
        each
        for request in requests
        for each in request
        if each is not lead
        and each.call == lead.call
        and each.is_short == lead.is_short
        and max(each.tokens, lead.tokens)
        <= MAX_BATCH_LENGTH_RATIO * min(each.tokens, lead.tokens)
    ]
    batch, longest = [lead], lead.tokens
    for each in sorted(like, key=lambda e: abs(e.tokens - lead.tokens)):
        longest = max(longest, each.tokens)
        if len(batch) == MAX_ROWS or longest * (len(batch) + 1) > batch_tokens:
            break
        batch.append(each)
    return batch


def count_tokens(text: str | tuple[str, str]) -> int:
    """Estimates the tokens of a text, or of the longer text of a pair."""
    texts = (text,) if isinstance(text, str) else text
    longest = max(len(text.encode()) for text in texts)
    return max(MIN_TOKENS, 1 + longest // BYTES_A_TOKEN)
