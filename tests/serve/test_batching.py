"""Tests of `serve.batching`."""

import asyncio
import threading
import types
from unittest import mock

import pytest
from hypothesis import given, settings, strategies as st

from serve import batching
from serve.batching import Batcher, BusyError, TooLargeError, count_tokens
from serve.fair_queue import CLIENT
from serve.metrics import ModelMetrics
from translate.runtime.bounded_batches import MAX_ROWS
from translate.runtime.tf_serving import RefusedRequestError

BUDGET = 64


def run(coroutine, in_flight=1, errors=None):
    """Runs a function of a `Batcher` and a list of the sizes of batches."""
    errors = errors or mock.Mock()

    async def main():
        sizes = []
        metrics = ModelMetrics(
            types.SimpleNamespace(observe=sizes.append), mock.Mock(), errors
        )
        batcher = Batcher(in_flight, BUDGET, 1000, metrics)
        async with batcher.running():
            return await asyncio.wait_for(coroutine(batcher, sizes), 60)

    return asyncio.run(main())


class Shout:
    """Answers texts in capitals when its `gate` is open; keeps the `batches`."""

    def __init__(self, is_open=True):
        self.batches, self.gate = [], threading.Event()
        if is_open:
            self.gate.set()

    def __call__(self, texts, mark=""):
        self.batches.append(texts)
        assert self.gate.wait(30)
        return [text.upper() + mark for text in texts]


# Of 8 to 60 tokens: one of each length would fit into a batch.
LONG_TEXTS = st.builds(str.__mul__, st.sampled_from("abcé"), st.integers(0, 119))
TEXTS = st.lists(st.text("abc é", max_size=20) | LONG_TEXTS, max_size=12)


@settings(max_examples=60, deadline=None)
@given(requests=st.lists(TEXTS, max_size=6), in_flight=st.integers(1, 3))
def test_each_request_gets_its_answers_in_order(requests, in_flight):
    shout = Shout()

    async def ask_all(batcher, sizes):
        return await asyncio.gather(
            *(batcher.run(shout, request) for request in requests)
        ), sizes

    answers, sizes = run(ask_all, in_flight=in_flight)

    assert answers == [[t.upper() for t in request] for request in requests]
    assert sum(sizes) == sum(map(len, requests))
    for batch in shout.batches:
        lengths = [count_tokens(text) for text in batch]
        # The first one leads.
        assert all(max(n, lengths[0]) <= 2 * min(n, lengths[0]) for n in lengths)
        assert len(batch) == 1 or max(lengths) * len(batch) <= BUDGET
        assert len(batch) <= MAX_ROWS


def test_requests_share_a_batch_across_time(monkeypatch):
    monkeypatch.setattr(batching, "WAIT", 0.5)
    shout = Shout()

    async def ask_twice(batcher, _):
        first = asyncio.create_task(batcher.run(shout, ["one"]))
        await asyncio.sleep(0.001)
        return await asyncio.gather(first, batcher.run(shout, ["two"]))

    assert run(ask_twice) == [["ONE"], ["TWO"]]
    assert shout.batches == [["one", "two"]]


async def until(holds):
    while not holds():
        await asyncio.sleep(0.001)


def test_other_calls_are_other_batches():
    shout = Shout()

    async def ask_both(batcher, _):
        return await asyncio.gather(
            batcher.run(shout, ["a", "b"]), batcher.run(shout, ["c"], "!")
        )

    assert run(ask_both) == [["A", "B"], ["C!"]]
    assert sorted(shout.batches) == [["a", "b"], ["c"]]


@pytest.mark.parametrize("kind", [MemoryError, RefusedRequestError])
def test_one_that_fails_is_alone_with_it(kind):
    def fail(texts):
        if "bad" in texts:
            raise kind("of bad")
        return texts

    async def ask_both(batcher, _):
        asked = [batcher.run(fail, texts) for texts in (["good"], ["bad", "good"])]
        return await asyncio.gather(*asked, return_exceptions=True)

    good, bad = run(ask_both)

    assert good == ["good"]
    assert isinstance(bad, kind)


def test_what_nobody_waits_for_is_not_tried_again():
    started, gate, tried = threading.Event(), threading.Event(), []

    def fail(texts):
        tried.append(texts)
        started.set()
        assert gate.wait(30)
        if len(texts) > 1:
            raise MemoryError
        return texts

    async def leave(batcher, _):
        gone = asyncio.create_task(batcher.run(fail, ["gone"]))
        stays = asyncio.create_task(batcher.run(fail, ["stays"]))
        await until(started.is_set)
        gone.cancel()
        await asyncio.wait([gone])
        gate.set()
        return await stays

    assert run(leave) == ["stays"]
    assert tried == [["gone", "stays"], ["stays"]]


def test_a_short_request_does_not_wait_for_any_batch_of_a_long_one():
    started, gate = [], threading.Event()

    def answer(texts):
        started.append(texts)
        if "short" not in texts:
            assert gate.wait(30)
        return texts

    async def ask_both(batcher, _):
        long = asyncio.create_task(
            batcher.run(answer, [f"long {n}" for n in range(40)])
        )
        await until(lambda: started)
        short = await asyncio.wait_for(batcher.run(answer, ["short"]), 10)
        gate.set()
        return short, len(await long)

    assert run(ask_both, in_flight=2) == (["short"], 40)
    # No sentence of the long one is in its batch.
    assert started[1] == ["short"]


def fail(texts):
    raise MemoryError("of details")


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (fail, MemoryError, "of details"),
        # Fewer results than texts are a bug of the model.
        (lambda texts: [], RuntimeError, "a worker failed; it continues"),
    ],
)
def test_an_error_is_counted_and_logged_and_the_worker_continues(
    answer, kind, message, caplog
):
    errors = mock.Mock()

    async def ask_twice(batcher, _):
        failed = await asyncio.gather(
            batcher.run(answer, ["a"]), return_exceptions=True
        )
        return failed, await batcher.run(lambda texts: texts, ["b"]), batcher.is_alive

    (failed,), works, is_alive = run(ask_twice, errors=errors)

    assert isinstance(failed, kind)
    assert works == ["b"]
    assert is_alive
    errors.inc.assert_called_once_with()
    assert message in caplog.text
    assert "Traceback" in caplog.text


def test_a_model_that_does_not_answer_is_found(monkeypatch):
    monkeypatch.setattr(batching, "PROBE_SECONDS", 0.05)
    monkeypatch.setattr(batching, "FRESH_SECONDS", 0)
    shout = Shout(is_open=False)

    async def check(batcher, _):
        silent = [await batcher.is_responsive(shout, "a") for _ in range(2)]
        shout.gate.set()
        monkeypatch.setattr(batching, "PROBE_SECONDS", 60)
        return silent, await batcher.is_responsive(shout, "a")

    assert run(check) == ([False, False], True)
    # A check that still waits is not repeated.
    assert shout.batches[0] == ["a"]
    assert len(shout.batches) <= 2


def test_a_model_that_has_just_answered_is_not_asked_again():
    shout = Shout()

    async def check(batcher, _):
        await batcher.run(shout, ["a"])
        return await batcher.is_responsive(shout, "b")

    assert run(check) is True
    assert shout.batches == [["a"]]


def test_a_worker_that_has_ended_is_found():
    async def check(batcher, _):
        batcher._workers[0].cancel()
        await until(lambda: not batcher.is_alive)
        return await batcher.is_responsive(lambda texts: texts, "a")

    assert run(check, in_flight=2) is False


def test_what_is_longer_than_a_batch_is_refused():
    async def ask(batcher, _):
        fits = await batcher.run(lambda t: t, ["a" * batcher.max_bytes])
        with pytest.raises(TooLargeError, match="must have at most 255 bytes"):
            await batcher.run(lambda t: t, ["a" * (batcher.max_bytes + 1)])
        return len(fits)

    assert run(ask) == 1


async def ask_as(client, batcher, *args, **kwargs):
    """Runs texts for a client; a task of its own keeps it from the others."""
    CLIENT.set(client)
    return await batcher.run(*args, **kwargs)


def test_a_client_and_all_together_have_full_queues(monkeypatch):
    monkeypatch.setattr(batching, "MAX_FULL_QUEUES", 2)
    shout = Shout(is_open=False)

    async def ask(batcher, _):
        batcher._max_waiting = 3
        asked = [asyncio.create_task(ask_as("a", batcher, shout, ["a"]))]
        await until(lambda: shout.batches)
        for client in ("a", "b"):
            texts = [client] * 3
            asked.append(asyncio.create_task(ask_as(client, batcher, shout, texts)))
            await asyncio.sleep(0)
            # At first its own queue is full, then that of all.
            for other in ("a", "c") if client == "b" else "a":
                with pytest.raises(BusyError):
                    await asyncio.create_task(ask_as(other, batcher, shout, ["x"]))
        # The first sentences of its request were admitted.
        admitted = ask_as("c", batcher, shout, ["d"], is_admitted=True)
        asked.append(asyncio.create_task(admitted))
        await until(lambda: len(batcher._queue) == 7)
        shout.gate.set()
        return await asyncio.gather(*asked)

    assert run(ask) == [["A"], ["A"] * 3, ["B"] * 3, ["D"]]
