"""Pairs that are held out, beside what sorting all hashes gives."""

import hashlib
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from command_line.errors import UserError
from train.data.corpus import Pairs
from train.data.held_out import choose_pairs, hold_out


def choose_by_sorting(pairs, size, seed):
    """Returns the same as `choose_pairs`, with all pairs in memory."""
    first = {}
    for source, target in pairs:
        if source.strip() and target.strip():
            first.setdefault(source, target)

    def key(source):
        text = f"{seed} {source}".encode()
        return hashlib.blake2b(text, digest_size=8).digest()

    chosen = {*sorted(first, key=key)[:size]}
    return {source: target for source, target in first.items() if source in chosen}


# Few letters, so that sources repeat; blanks, since such pairs are not held out.
TEXTS = st.text("ab é", max_size=3)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=60)


@given(pairs=PAIRS, size=st.integers(1, 9), seed=st.integers(0, 3))
def test_the_smallest_hashes_are_held_out(pairs, size, seed):
    found = choose_pairs(pairs, size, seed)

    expected = choose_by_sorting(pairs, size, seed)
    assert list(found.items()) == list(expected.items())


@given(pairs=PAIRS, size=st.integers(1, 5) | st.none(), seed=st.integers(0, 3))
def test_no_source_is_on_both_sides(tmp_path_factory, pairs, size, seed):
    corpus = Pairs([s for s, _ in pairs], [t for _, t in pairs])
    cache = tmp_path_factory.getbasetemp() / "cache"
    wanted = size or min(2_000, max(1, len(pairs) // 20))
    candidates = {s for s, t in pairs if s.strip() and t.strip()}
    if len(candidates) < wanted or len({s for s, _ in pairs}) == wanted:
        with pytest.raises(UserError, match=f"{wanted:,} of {len(pairs):,} pairs"):
            hold_out(corpus, size, seed, cache)
        return
    training, held_out = hold_out(corpus, size, seed, cache)

    assert len(held_out) == len({*held_out.sources}) == wanted
    assert {*held_out} <= {*pairs}
    assert list(training) == [p for p in pairs if p[0] not in held_out.sources]
    assert len(training) == len(list(training)) > 0
    # The sources do not depend on the order of the pairs.
    back = Pairs(corpus.sources[::-1], corpus.targets[::-1])
    assert {*hold_out(back, size, seed, cache)[1].sources} == {*held_out.sources}
    # The second time they come from the cache.
    again = hold_out(corpus, size, seed, cache)
    assert [list(part) for part in again] == [list(training), list(held_out)]


def numbered(count):
    return Pairs(*[[f"{side} {i}" for i in range(count)] for side in "st"])


def test_the_default_size_suits_small_and_large_corpora(tmp_path):
    sizes = {
        count: hold_out(numbered(count), None, 0, tmp_path)[1]
        for count in (2, 200, 50_000)
    }

    assert [len(pairs) for pairs in sizes.values()] == [1, 10, 2_000]


def test_each_seed_and_size_is_another_corpus(tmp_path):
    digests = [
        part.digest()
        for size, seed in ((10, 0), (10, 1), (11, 0))
        for part in hold_out(numbered(200), size, seed, tmp_path)
    ]

    assert len({*digests}) == 6


def test_memory_does_not_grow_with_the_corpus():
    peaks = []
    for count in (2_000, 60_000):
        tracemalloc.start()
        choose_pairs(((f"s {i}", f"t {i}") for i in range(count)), 50, 0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[1] < 1.5 * peaks[0]
