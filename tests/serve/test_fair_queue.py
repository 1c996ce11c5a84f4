"""Tests of `serve.fair_queue`."""

import collections
import itertools
import sys
import threading

import pytest
from hypothesis import given, settings, strategies as st

from serve.fair_executor import FairExecutor
from serve.fair_queue import CLIENT, FairQueue, QueuedItem

BUDGET = 64


def make_items(client, count, tokens=BUDGET, is_short=False):
    """Returns the items of a request; with `BUDGET` tokens each is a batch."""
    request = object()
    return [
        QueuedItem(client, request, ("call",), "text", tokens, None, is_short)
        for _ in range(count)
    ]


def make_queue(requests):
    queue = FairQueue()
    for item in itertools.chain(*requests):
        queue.add(item)
    return queue


def take_all(queue):
    """Returns the batches of a queue, in order."""
    return list(iter(lambda: queue.take_batch(BUDGET, True), []))


SIZES = st.integers(1, 9), st.integers(8, BUDGET), st.booleans()
REQUESTS = st.lists(st.builds(make_items, st.sampled_from("abc"), *SIZES), max_size=8)


@settings(max_examples=60, deadline=None)
@given(REQUESTS, st.sets(st.integers(0, 70)))
def test_each_item_is_taken_once_unless_it_is_discarded(requests, discarded):
    items = list(itertools.chain(*requests))
    queue = make_queue(requests)
    gone = {item for place, item in enumerate(items) if place in discarded}
    for item in [*gone, *gone]:
        queue.discard(item)
    assert len(queue) == len(items) - len(gone)

    taken = list(itertools.chain(*take_all(queue)))

    assert collections.Counter(taken) == collections.Counter(set(items) - gone)
    assert len(queue) == sum(map(queue.count, "abc")) == 0
    # Nothing of them is left in memory.
    assert not queue._turns
    assert not queue._alike


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=12))
def test_clients_have_equal_shares_whatever_they_send(sizes):
    """Of any two clients with waiting items, none is ahead by more than one."""
    queue = make_queue(make_items(*size) for size in sizes)
    taken = collections.Counter()
    while any(map(queue.count, "abc")):
        waiting = [taken[client] for client in "abc" if queue.count(client)]
        assert max(waiting) - min(waiting) <= 1
        ((item,),) = (queue.take_batch(BUDGET, True),)
        taken[item.client] += 1


def test_the_requests_of_a_client_take_turns():
    requests = [make_items("a", 3), make_items("a", 2)]

    batches = take_all(make_queue(requests))

    first, second = requests
    assert [item for (item,) in batches] == [
        *(first[0], second[0], first[1], second[1], first[2])
    ]


def test_the_clients_share_a_batch():
    requests = [make_items("a", 100, tokens=8), make_items("b", 2, tokens=8)]

    first, *_ = take_all(make_queue(requests))

    assert [item.client for item in first].count("b") == 2
    assert len(first) == BUDGET // 8


def test_the_nearest_lengths_share_a_batch():
    lengths = [8, 5, 15, 7, 17, 9, 3]
    items = [item for n in lengths for item in make_items("a", 1, tokens=n)]

    first = make_queue([items]).take_batch(BUDGET, True)

    assert [item.tokens for item in first] == [8, 7, 9, 5]


def test_an_item_of_a_long_request_leads_only_where_it_may():
    long, short = make_items("a", 2, 8), make_items("b", 1, 8, is_short=True)
    queue = make_queue([long, short])

    assert queue.take_batch(BUDGET, with_long=False) == short
    assert queue.take_batch(BUDGET, with_long=False) == []
    assert queue.take_batch(BUDGET, with_long=True) == long


def count_calls(function, *args):
    """Returns how many functions a call calls, those in C included."""
    count = 0

    def note(frame, event, _):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "act",
    [
        lambda queue: queue.take_batch(BUDGET, True),
        lambda queue: queue.add(make_items("b", 1)[0]),
        lambda queue: queue.discard(next(iter(queue._items))),
        lambda queue: (len(queue), queue.count("a")),
    ],
)
def test_the_work_does_not_depend_on_what_waits(act):
    queues = [
        make_queue([make_items("a", n, tokens=8), make_items("b", n, tokens=9)])
        for n in (20, 5000)
    ]

    few, many = (count_calls(act, queue) for queue in queues)

    assert few == many > 0


def submit_as(client, executor, function, *args):
    token = CLIENT.set(client)
    try:
        return executor.submit(function, *args)
    finally:
        CLIENT.reset(token)


def test_clients_take_turns_in_a_thread():
    executor, gate, done = FairExecutor("test"), threading.Event(), []
    jobs = [submit_as("a", executor, gate.wait, 30)]
    for client in "aaaab":
        jobs.append(submit_as(client, executor, done.append, client))
    jobs[-2].cancel()  # The last one of `a`.
    gate.set()

    for job in jobs[:-2] + jobs[-1:]:
        job.result(30)

    assert sorted(done[:2]) == ["a", "b"]
    assert done.count("a") == 3
