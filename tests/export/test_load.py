"""A short form of `python -m tests.helpers.load`."""

import numpy as np
import pytest

from tests.helpers.load import Report
from tests.helpers.load import make_texts
from tests.helpers.load import run_load
from tests.helpers.requests import differences


@pytest.mark.slow
def test_many_clients_get_right_answers(servable):
    report = run_load(servable, seconds=4, num_clients=8, num_texts=12)

    assert not report.errors
    assert not report.wrong
    assert report.requests >= 8
    assert report.growth() < 0.05


def test_growth_is_that_of_the_second_half():
    first = [(t, 1000 + t) for t in range(50)]

    flat = Report(memory=first + [(t, 1050) for t in range(50, 100)])
    rising = Report(memory=first + [(t, 1000 + t) for t in range(50, 100)])

    assert flat.growth() == 0
    assert 0.03 < rising.growth() < 0.05


def test_a_wrong_answer_is_seen():
    alone = {"score": np.float32(-1.0), "ids": np.array([4, 1])}

    right = {"score": np.float32(-1.000001), "ids": np.array([4, 1, 0, 0])}
    for wrong in (
        {**right, "score": np.float32(-1.001)},
        {**right, "ids": np.array([4, 1, 5, 0])},
        {**right, "ids": np.array([4])},
        {"score": right["score"]},
    ):
        assert differences(wrong, alone)

    assert not differences(right, alone)


def test_candidates_that_tie_have_no_order():
    alone = {
        "tokens": np.array([[b"a", b"b", b""]], object),
        "parents": np.array([[0, 1, -1]]),
        "log_probabilities": np.array([[-200.0, -200.002, 0.0]], np.float32),
    }
    apart = np.array([[-200.0, -200.1, 0.0]], np.float32)
    swapped = {
        "tokens": np.array([[b"b", b"a", b""]], object),
        "parents": np.array([[1, 0, -1]]),
    }

    assert not differences({**alone, **swapped}, alone)
    alone["log_probabilities"] = apart
    assert len(differences({**alone, **swapped}, alone)) == 2


def test_weights_that_tie_have_no_alignment():
    alone = {
        "attention": np.array([[0.3, 0.300001, 0.1], [0.2, 0.7, 0.1]]),
        "alignment": np.array([1, 1]),
    }

    assert not differences({**alone, "alignment": np.array([0, 1])}, alone)
    alone["attention"][0, 0] = 0.2
    assert differences({**alone, "alignment": np.array([0, 1])}, alone)


def test_texts_are_distinct_and_some_are_nasty():
    texts = make_texts(200)

    assert len(set(texts)) == 200
    assert 3 < sum(b"word" * 100 in t or not t.isascii() for t in texts) < 30
