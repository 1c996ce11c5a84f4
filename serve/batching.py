"""Batches sentences of concurrent requests by similar length.

When the queue was empty, a batch waits a few milliseconds for more sentences;
otherwise it starts at once. `FairQueue` chooses its sentences. Of several workers
one is left to short requests, whose batches hold no sentences of long ones.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

from command_line.errors import UserError
from serve.fair_queue import CLIENT, FairQueue, QueuedItem
from serve.metrics import ModelMetrics
from translate.line_batching import BYTES_A_TOKEN, MIN_TOKENS
from translate.runtime.tf_serving import RefusedRequestError

WAIT = 0.005  # Seconds to wait for more sentences.
SHORT = 0.25  # Maximum size of a short request, in batches.
MIN_LENGTH_LIMIT = 16  # Tokens up to which no sentence is too long.
# A model that has translated something in these seconds is not asked again.
FRESH_SECONDS = 10
PROBE_SECONDS = 5  # Timeout of a translation that checks a model.
PROBE_CLIENT = "probe of the service"  # No key has this name.
# So many clients may fill their queues; more of them would need gigabytes.
MAX_FULL_QUEUES = 50

logger = logging.getLogger(__name__)


class BusyError(Exception):
    """The queue is full; the client should retry later."""


class TooLargeError(ValueError):
    """A request has too many sentences, or too long ones."""


class Batcher:
    """A queue of sentences, and the threads that run a model on batches of it.

    It runs `in_flight` batches at a time, of at most `batch_tokens` with padding. A
    request has at most `max_waiting` sentences, and as many of a client may wait.
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
        self._queue = FairQueue()
        self._changed = asyncio.Event()
        self._workers = []
        self._answered = -FRESH_SECONDS  # Time of the last result.
        self._probe = None

    @contextlib.asynccontextmanager
    async def running(self):
        """Runs batches while the context is open."""
        count = self._in_flight
        self._workers = [asyncio.create_task(self._work()) for _ in range(count)]
        try:
            yield self
        finally:
            for worker in self._workers:
                worker.cancel()
            await asyncio.gather(*self._workers, return_exceptions=True)
            self._pool.shutdown(wait=False)

    @property
    def max_bytes(self) -> int:
        """Maximum size of a sentence."""
        return BYTES_A_TOKEN * self._max_tokens - 1

    @property
    def is_alive(self) -> bool:
        """Whether all workers run."""
        return not any(worker.done() for worker in self._workers)

    async def is_responsive(self, method: Callable, text: Any) -> bool:
        """Returns whether the workers run, and answer `text` in time or did lately."""
        now = asyncio.get_running_loop().time
        if not self.is_alive:
            return False
        if now() < self._answered + FRESH_SECONDS:
            return True
        if self._probe is None or self._probe.done():
            (item,) = self._enqueue(PROBE_CLIENT, (method,), [text])
            self._queue.advance(PROBE_CLIENT)
            self._probe = item.future
        await asyncio.wait([self._probe], timeout=PROBE_SECONDS)
        return self._probe.done() and not self._probe.exception()

    async def run(
        self, method: Callable, texts: list, *args, is_admitted: bool = False
    ) -> list:
        """Returns the results of texts, or of pairs of texts, in their order.

        A `method` of a model computes them, with further arguments. No limit applies
        if others of the same request were queued before (`is_admitted`).

        Raises:
            BusyError: If too many sentences of the client wait.
            TooLargeError: If a text is longer than a batch, or if there are
                more texts than may ever wait.
        """
        with self.submit(method, texts, *args, is_admitted=is_admitted) as futures:
            return await asyncio.gather(*futures)

    @contextlib.contextmanager
    def submit(
        self, method: Callable, texts: list, *args, is_admitted: bool = False
    ) -> Iterator[list[asyncio.Future]]:
        """Yields futures of the results of `run`; cancels the pending ones at exit."""
        client = CLIENT.get()
        if not is_admitted:
            self._check(client, texts)
        items = self._enqueue(client, (method, *args), texts)
        try:
            yield [item.future for item in items]
        finally:
            for item in items:
                item.future.cancel()
                self._queue.discard(item)
            self._note_length()

    def check_count(self, count: int) -> None:
        """Refuses a request, or a part of it, of too many sentences."""
        if count > self._max_waiting:
            raise TooLargeError(
                f"a request must have at most {self._max_waiting} sentences "
                f"(--queue-limit). Received: at least {count}"
            )

    def _check(self, client: str, texts: list) -> None:
        """Checks that there is room for the texts of a client."""
        self.check_count(len(texts))
        if max(map(count_tokens, texts), default=0) > self._max_tokens:
            raise TooLargeError(f"a sentence must have at most {self.max_bytes} bytes")
        total = MAX_FULL_QUEUES * self._max_waiting
        for waiting, limit in (
            (self._queue.count(client), self._max_waiting),
            (len(self._queue), total),
        ):
            if waiting + len(texts) > limit:
                raise BusyError

    def _enqueue(self, client: str, call: tuple, texts: list) -> list[QueuedItem]:
        """Adds the texts of a request to the queue."""
        make_future = asyncio.get_running_loop().create_future
        sizes, request = list(map(count_tokens, texts)), object()
        is_short = sum(sizes) <= SHORT * self._batch_tokens
        items = [
            QueuedItem(client, request, call, text, size, make_future(), is_short)
            for text, size in zip(texts, sizes, strict=True)
        ]
        for item in items:
            self._queue.add(item)
        self._changed.set()
        self._note_length()
        return items

    def _note_length(self) -> None:
        self._metrics.queue_length.set(len(self._queue))

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
        was_empty = not self._queue
        batch = self._queue.take_batch(self._batch_tokens, self._long_slots > 0)
        if not batch:
            self._changed.clear()
            await self._changed.wait()
            if was_empty:
                await asyncio.sleep(WAIT)
            return
        is_long = not batch[0].is_short
        self._long_slots -= is_long
        self._note_length()
        try:
            self._metrics.batch_sizes.observe(len(batch))
            await self._answer(batch)
        finally:
            self._long_slots += is_long
            self._changed.set()
            for each in batch:
                if not each.future.done():
                    each.future.set_exception(RuntimeError("no result"))

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


def count_tokens(text: str | tuple[str, str]) -> int:
    """Estimates the tokens of a text, or of the longer text of a pair."""
    texts = (text,) if isinstance(text, str) else text
    longest = max(len(text.encode()) for text in texts)
    return max(MIN_TOKENS, 1 + longest // BYTES_A_TOKEN)
