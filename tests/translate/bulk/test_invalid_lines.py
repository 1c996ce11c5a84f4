import pytest
from hypothesis import given, strategies as st

from tests.helpers.fake_models import FunctionRuntime, make_outputs
from translate.bulk.invalid_lines import PROBE, TRUNCATED, translate_shard

POISON = b"?"
LIMIT = 5
WORDS = st.sampled_from(["ab", "cd ", "é", "long", "?", " "])
LINES = st.lists(st.lists(WORDS, max_size=4).map("".join).map(str.encode))


class Model:
    """Translates into capitals; cannot bear a text with a question mark."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.append(texts)
        if any(POISON in text for text in texts):
            raise ValueError("no\tquestions\nof mine")
        return make_outputs([text.upper() for text in texts], LIMIT)


@given(LINES, st.integers(1, 64))
def test_a_line_fares_as_it_would_alone(lines, batch_tokens):
    def expected(line):
        if POISON in line:
            return b"", "ValueError: no questions"
        return line.upper()[:LIMIT], TRUNCATED if len(line) > LIMIT else None

    results = translate_shard(FunctionRuntime(Model()), lines, batch_tokens)

    assert results == [expected(line) for line in lines]


@given(LINES, st.integers(0, 9))
def test_what_is_not_utf_8_is_left_empty(lines, place):
    broken = [*lines[:place], "é".encode() + b"\xff?", *lines[place:]]
    model = Model()

    results = translate_shard(FunctionRuntime(model), broken, 64)

    place = min(place, len(lines))
    assert results.pop(place) == (b"", "not text: byte 0xff at column 3")
    assert results == translate_shard(FunctionRuntime(Model()), lines, 64)
    assert not any(b"\xff" in text for texts in model.asked for text in texts)


def test_one_poisoned_line_costs_few_calls():
    model = Model()

    translate_shard(
        FunctionRuntime(model), [b"a%d" % n for n in range(127)] + [POISON], 1024
    )

    # Twice as many as halvings, the batch itself, and the probe.
    assert len(model.asked) <= 2 * 7 + 2
    assert model.asked.count([PROBE]) == 1


def test_an_error_of_the_model_itself_is_raised():
    def broken(texts):
        raise RuntimeError(f"out of order, {len(texts)} asked")

    with pytest.raises(RuntimeError, match="out of order, 1 asked"):
        translate_shard(FunctionRuntime(broken), [b"a", b"b"], 1024)


def test_a_batch_that_is_too_large_is_halved():
    def small(texts):
        if len(texts) > 3:
            raise MemoryError("no room")
        return make_outputs([text.upper() for text in texts])

    results = translate_shard(
        FunctionRuntime(small), [b"a%d" % n for n in range(50)], 1024
    )

    assert results == [(b"A%d" % n, None) for n in range(50)]
