"""Sentences of many requests are translated together, by like length.

A batch waits a few milliseconds for others where there was nothing to do, and
not at all where there was. The requests take turns in whose first sentence
leads a batch; what else waits fills it, where it is of like length. So a short
text does not wait for all of a long one, and nobody pays for much padding.
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

WAIT = 0.005  # Seconds for others to come.
LIKE = 2  # By how much lengths may differ in a batch, in tokens.


class BusyError(Exception):
    """More waits than may; the client should come back later."""


@dataclasses.dataclass(eq=False)
class Waiting:
    """Something to be answered.

    Attributes:
        question: Method of the model, from a list of things to as many
            answers, and what it takes beside.
        thing: A text, or a pair of texts.
        tokens: Int, about how long it is.
        future: For the answer. Who needs it no more cancels it.
    """

    question: tuple
    thing: Any
    tokens: int
    future: asyncio.Future


class Batcher:
    """A queue before a model, and the threads behind which it works.

    Args:
        in_flight: Int, how many batches are at work at a time.
        batch_tokens: Int, how many tokens a batch may have, padding included.
        max_waiting: Int, how many things may wait. A request that finds none
            waiting may bring more.
        observe: Function that is told how many rows each batch has.
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
        self._requests = collections.deque()  # Lists of `Waiting`, in turn.
        self._filled = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self):
        """Answers while the context lasts."""
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
    def waiting(self) -> int:
        """How many things wait."""
        return sum(
            not each.future.done()
            for request in self._requests
            for each in request
        )

    async def ask(self, question: Callable, things: list, *args) -> list:
        """Returns the answers to things, in their order.

        Args:
            question: Method of a model.
            things: What it is asked about, texts or pairs of texts.
            *args: What it takes beside.

        Raises:
            BusyError: If too much waits.
        """
        with self.asked(question, things, *args) as futures:
            return await asyncio.gather(*futures)

    @contextlib.contextmanager
    def asked(
        self, question: Callable, things: list, *args
    ) -> Iterator[list[asyncio.Future]]:
        """Gives futures of the answers; drops at the end what still waits.

        Raises:
            BusyError: If too much waits.
        """
        waiting = self.waiting
        if waiting and waiting + len(things) > self._max_waiting:
            raise BusyError
        loop = asyncio.get_running_loop()
        request = [
            Waiting(
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

    def _take(self) -> list[Waiting]:
        """Takes a batch out of what waits; drops what nobody waits for."""
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

    async def _answer(self, batch: list[Waiting]) -> None:
        (question, *args), things = batch[0].question, [b.thing for b in batch]
        loop = asyncio.get_running_loop()
        try:
            answers = await loop.run_in_executor(
                self._pool, question, things, *args
            )
        except Exception as error:
            # One may be too long, or need more memory than there is. What a
            # server said is said of all.
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
    requests: list[list[Waiting]], batch_tokens: int
) -> list[Waiting]:
    """Returns what is answered with the first thing of the first request."""
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
    """Returns about how many tokens a text has, or the longest of a pair."""
    texts = (thing,) if isinstance(thing, str) else thing
    longest = max(len(text.encode()) for text in texts)
    return max(MIN_TOKENS, 1 + longest // BYTES_A_TOKEN)
