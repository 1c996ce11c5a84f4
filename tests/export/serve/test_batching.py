"""Tests of `export.serve.batching`."""

import asyncio
import threading

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from export.line_batching import MAX_ROWS
from export.serve import batching
from export.serve.batching import Batcher
from export.serve.batching import count_tokens

BUDGET = 64


def run(coroutine, in_flight=1):
    """Runs a function of a `Batcher` and a list of the sizes of batches."""

    async def main():
        sizes = []
        batcher = Batcher(in_flight, BUDGET, 1000, sizes.append)
        async with batcher.running():
            return await asyncio.wait_for(coroutine(batcher, sizes), 60)

    return asyncio.run(main())


class Shout:
    """Answers texts in capitals.

    Attributes:
        batches: Lists of texts, in the order in which they came.
        gate: Event, without which it does not answer.
    """

    def __init__(self):
        self.batches, self.gate = [], threading.Event()

    def __call__(self, texts, mark=""):
        self.batches.append(texts)
        assert self.gate.wait(30)
        return [text.upper() + mark for text in texts]


TEXTS = st.lists(st.text("abc é", max_size=120), max_size=12)


@settings(max_examples=60, deadline=None)
@given(requests=st.lists(TEXTS, max_size=6), in_flight=st.integers(1, 3))
def test_each_request_gets_its_answers_in_order(requests, in_flight):
    shout = Shout()
    shout.gate.set()

    async def ask_all(batcher, sizes):
        return await asyncio.gather(
            *(batcher.ask(shout, request) for request in requests)
        ), sizes

    answers, sizes = run(ask_all, in_flight=in_flight)

    assert answers == [[t.upper() for t in request] for request in requests]
    assert sum(sizes) == sum(map(len, requests))
    for batch in shout.batches:
        lengths = [count_tokens(text) for text in batch]
        # The first one leads.
        assert all(
            max(n, lengths[0]) <= 2 * min(n, lengths[0]) for n in lengths
        )
        assert len(batch) == 1 or max(lengths) * len(batch) <= BUDGET
        assert len(batch) <= MAX_ROWS


def test_sentences_of_unlike_lengths_are_in_batches_of_their_own():
    shout = Shout()
    shout.gate.set()
    short, long = ["word"] * 3, ["word " * 40] * 2
    request = [short[0], long[0], short[1], long[1], short[2]]
    ratio = count_tokens(long[0]) / count_tokens(short[0])
    assert ratio > 2

    async def ask(batcher, _):
        return await batcher.ask(shout, request)

    assert run(ask) == [text.upper() for text in request]
    for batch in shout.batches:
        assert len({count_tokens(text) for text in batch}) == 1
    assert max(map(len, shout.batches)) == len(short)


def test_requests_share_a_batch_across_time(monkeypatch):
    monkeypatch.setattr(batching, "WAIT", 0.5)
    shout = Shout()
    shout.gate.set()

    async def ask_twice(batcher, _):
        first = asyncio.create_task(batcher.ask(shout, ["one"]))
        await asyncio.sleep(0.001)
        return await asyncio.gather(first, batcher.ask(shout, ["two"]))

    assert run(ask_twice) == [["ONE"], ["TWO"]]
    assert shout.batches == [["one", "two"]]


async def until(holds):
    while not holds():
        await asyncio.sleep(0.001)


def test_a_short_request_does_not_wait_for_all_of_a_long_one():
    shout = Shout()
    long = [f"{n} {'word ' * 50}" for n in range(20)]

    async def ask_both(batcher, _):
        first = asyncio.create_task(batcher.ask(shout, long))
        await until(lambda: shout.batches)
        second = asyncio.create_task(batcher.ask(shout, ["hello"]))
        await asyncio.sleep(0)
        shout.gate.set()
        await asyncio.gather(first, second)

    run(ask_both)

    # One of the long one was at work, and one more had its turn.
    assert ["hello"] in shout.batches[1:3]


def test_other_questions_are_other_batches():
    shout = Shout()
    shout.gate.set()

    async def ask_both(batcher, _):
        return await asyncio.gather(
            batcher.ask(shout, ["a", "b"]), batcher.ask(shout, ["c"], "!")
        )

    assert run(ask_both) == [["A", "B"], ["C!"]]
    assert sorted(shout.batches) == [["a", "b"], ["c"]]


def test_what_nobody_waits_for_is_not_answered():
    shout = Shout()

    async def leave(batcher, _):
        first = asyncio.create_task(batcher.ask(shout, ["first"]))
        await until(lambda: shout.batches)
        gone = asyncio.create_task(batcher.ask(shout, ["gone"] * 3))
        stays = asyncio.create_task(batcher.ask(shout, ["stays"]))
        await until(lambda: batcher.queue_length == 4)
        gone.cancel()
        await until(lambda: batcher.queue_length == 1)
        shout.gate.set()
        return await asyncio.gather(first, stays)

    assert run(leave) == [["FIRST"], ["STAYS"]]
    assert shout.batches == [["first"], ["stays"]]


def test_one_that_fails_is_alone_with_it():
    def fail(texts):
        if "bad" in texts:
            raise MemoryError("of bad")
        return texts

    async def ask_both(batcher, _):
        return await asyncio.gather(
            batcher.ask(fail, ["good"]),
            batcher.ask(fail, ["bad", "good"]),
            return_exceptions=True,
        )

    good, bad = run(ask_both)

    assert good == ["good"]
    assert isinstance(bad, MemoryError)
