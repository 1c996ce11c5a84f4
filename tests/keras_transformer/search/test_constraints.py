"""Both searches with constraints are compared with one in plain Python."""

import functools

import hypothesis
import numpy as np
from hypothesis import strategies as st

from keras_transformer.search.beam_search import beam_search
from tests.helpers.oracles.graph_searches import graph_beam_search, run_search
from tests.helpers.oracles.reference_searches import (
    END,
    alphas,
    check_equal,
    plain_beam_search,
    random_tables,
    seeds,
    settings,
    spreads,
)

LENGTH, VOCABULARY_SIZE = 9, 6
SEARCHES = [functools.partial(beam_search, max_length=LENGTH), graph_beam_search]


def find(search, beam_size, tables, sentences, num_hypotheses=None):
    length_penalties, limits, prefixes, sizes, least = zip(*sentences, strict=True)
    found, _ = run_search(
        tables,
        beam_size,
        length_penalties,
        limits,
        prefixes,
        {"no_repeat_ngram": sizes, "min_length": least},
        num_hypotheses=num_hypotheses,
        search=search,
        known_sizes=(beam_size, VOCABULARY_SIZE),
    )
    return found


def make_sentence(alpha, limit, prefix, size, least):
    return alpha, limit, prefix[: limit - 1], size, least


SENTENCES = st.lists(
    st.builds(
        make_sentence,
        alphas,
        st.integers(1, LENGTH),
        st.lists(st.sampled_from([2, 4, 5]), max_size=4),
        st.integers(0, 4),
        st.integers(0, 11),
    ),
    min_size=1,
    max_size=4,
)


def own_length(ids):
    return ids.tolist().index(END) + 1


def test_both_searches_find_what_plain_python_finds():
    changed = []

    @settings(max_examples=60)
    @hypothesis.given(
        seed=seeds,
        spread=spreads,
        sizes=st.sampled_from([(1, 1), (2, 1), (5, 3)]),
        sentences=SENTENCES,
    )
    def check(seed, spread, sizes, sentences):
        beam_size, num_hypotheses = sizes
        shape = (len(sentences), LENGTH, VOCABULARY_SIZE, VOCABULARY_SIZE)
        tables = random_tables(seed, spread, shape)

        def search_plainly(table, sentence):
            alpha, limit, prefix, size, least = sentence
            given = beam_size, limit, alpha, num_hypotheses, tuple(prefix)
            return plain_beam_search(table, *given, size=size, least=least)

        found = map(search_plainly, tables, sentences)
        expected, _, gaps = zip(*found, strict=True)
        hypothesis.assume(min(gaps) > 1e-4)

        answers = [
            find(search, beam_size, tables, sentences, num_hypotheses)
            for search in SEARCHES
        ]

        check_equal(*answers, atol=1e-5)
        found = answers[0]
        for place, hypotheses in enumerate(expected):
            best = hypotheses[:num_hypotheses]
            filled = found.scores[place] > -np.inf
            np.testing.assert_allclose(
                found.scores[place][filled],
                [score for score, _ in best],
                rtol=1e-5,
                atol=1e-5,
            )
            for ids, (_, wanted) in zip(found.ids[place], best, strict=False):
                assert tuple(ids[: own_length(ids)]) == wanted
        free = [(*sentence[:3], 0, 0) for sentence in sentences]
        before = find(SEARCHES[0], beam_size, tables, free, num_hypotheses)
        changed.append((before.ids != found.ids).any())

    check()
    assert sum(changed) > 10


def test_what_is_forced_is_not_closed():
    tables = np.zeros((2, LENGTH, VOCABULARY_SIZE, VOCABULARY_SIZE), "float32")
    tables[..., END] = -1.0
    sentences = [(0.0, 9, [2, 2, 2, 2], 2, 0), (0.0, 3, [], 0, 9)]

    for search in SEARCHES:
        found = find(search, 1, tables, sentences)

        assert found.ids[0, 0, :4].tolist() == [2] * 4
        # The limit ends it, although the model prefers to continue.
        assert found.lengths[1] == 3
        assert found.truncated[1]
