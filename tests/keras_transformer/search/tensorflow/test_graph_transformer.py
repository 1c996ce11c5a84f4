"""The specification of `graph_transformer` are the layers, by `search_by_layers`."""

import concurrent.futures
import functools

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from keras_transformer.search.options import SearchOptions
from keras_transformer.search.tensorflow.graph_transformer import search_in_graph
from keras_transformer.special_ids import BOS_ID, PADDING_ID
from tests.helpers.layer_checks import OF_OTHER_SYSTEMS
from tests.helpers.oracles.graph_searches import (
    FIRST_WORD,
    Batch,
    check_same,
    make_model,
    random_batch,
    randomize,
    run_fast,
    run_plain,
    to_arrays,
    trace_fast,
    trace_plain,
)
from tests.helpers.oracles.reference_searches import seeds, settings

PADDED = (PADDING_ID, BOS_ID, *range(40, 70))
# Each has another width, and a vocabulary at or beside a multiple of 32. There
# is room for 16 positions more at a time, so 20 and 35 are no limit of it.
MODELS = {
    "post, sine": {"vocabulary_size": 33, "num_layers": 2},
    "pre, learned": {"vocabulary_size": 32, "num_layers": 2, "norm": "pre"}
    | {"hidden_dim": 9, "num_heads": 3, "key_dim": 4, "value_dim": 2}
    | {"positions": "learned", "sequence_length": 20},
    "post, learned": {"vocabulary_size": 70}
    | {"positions": "learned", "sequence_length": 35},
    "pre, sine": {"vocabulary_size": 31, "hidden_dim": 11, "norm": "pre"},
    "other": OF_OTHER_SYSTEMS
    | {"vocabulary_size": 34, "source_vocabulary_size": 29}
    | {"num_layers": 1, "decoder_layers": 2},
    "other, attention": {"vocabulary_size": 37, "num_layers": 2, "decoder_layers": 1}
    | {"use_bias": True, "activation": "gelu", "logits_bias": True}
    | {"tied_output": False, "position_offset": 2},
}
FORBIDDEN = {"post, learned": PADDED}
end_scales = st.sampled_from([1.0, 2.0, 4.0])


@functools.cache
def model_of(name):
    return make_model(**MODELS[name])


@functools.cache
def fast_search(name):
    return trace_fast(model_of(name), FORBIDDEN.get(name))


@functools.cache
def greedy_search(name):
    return trace_fast(model_of(name), FORBIDDEN.get(name), sizes=(1, None))


@functools.cache
def plain_search(name, beam_size):
    return trace_plain(model_of(name), beam_size, FORBIDDEN.get(name))


def fast(name, batch, beam_size, num_hypotheses):
    return fast_search(name)(*batch, np.int32(beam_size), np.int32(num_hypotheses))


@pytest.mark.parametrize(
    ("name", "beam_size"),
    [
        *(("pre, learned", 4), ("other", 4), ("other, attention", 4)),
        ("post, sine", 1),
        *(
            pytest.param(name, 4, marks=pytest.mark.slow)
            for name in ("post, sine", "pre, sine", "post, learned")
        ),
    ],
)
def test_it_finds_what_the_layers_find(name, beam_size):
    model, lengths = model_of(name), []

    @settings(max_examples=8)
    @hypothesis.given(
        seed=seeds, end_scale=end_scales, num_hypotheses=st.integers(1, beam_size)
    )
    def check(seed, end_scale, num_hypotheses):
        randomize(model, seed, end_scale)
        batch = random_batch(model, seed, shortest=0)

        found = fast(name, batch, beam_size, num_hypotheses)

        expected = plain_search(name, beam_size)(*batch)
        check_same(found, expected)
        if beam_size == 1:  # The size known when it is traced: greedy search.
            check_same(greedy_search(name)(*batch), expected)
        assert found.ids.shape[:2] == (len(batch.max_lengths), num_hypotheses)
        lengths.append(found.lengths[:, 0].numpy())

    check()
    # Rounds have changed, because room ran out and because sentences left.
    longest = {"pre, learned": 20, "post, learned": 35}.get(name, 40)
    assert max(x.max() for x in lengths) >= longest
    assert any(x.min() < 9 and x.max() > 16 for x in lengths)


def test_a_source_of_padding_alone_ignores_logits_of_any_size():
    model = model_of("pre, sine")
    randomize(model, seed=4)
    for weight in model.weights:
        if weight.path.endswith("query/kernel"):
            weight.assign(1e3 * weight)
    batch = random_batch(model, seed=4, limit=5)
    batch.source_ids[0] = PADDING_ID

    check_same(fast("pre, sine", batch, 4, 4), run_plain(model, batch, 4))


def test_forbidden_ids_are_not_chosen_and_keep_their_probability():
    name = "post, learned"
    model = model_of(name)
    randomize(model, seed=3)
    batch = random_batch(model, seed=3, sentences=(6, 6))
    batch.prefix_ids[:] = 0
    # The forbidden ids are the model's most probable ones.
    table = model.embedding.embeddings.numpy()
    table[40:] *= 3
    model.embedding.embeddings.assign(table)

    found = to_arrays(fast(name, batch, 4, 4))

    check_same(found, plain_search(name, 4)(*batch))
    real = found.ids[found.ids != PADDING_ID]
    assert not np.isin(real, PADDED).any()
    assert len(np.unique(real)) > 5
    free = to_arrays(run_fast(model, batch.take(slice(0, 2)), 2))
    assert (free.ids >= 40).any()


@pytest.mark.parametrize(
    ("dtype", "rtol"), [("float64", 1e-5), ("bfloat16", 0.03), ("mixed_bfloat16", 0.03)]
)
def test_what_is_forced_scores_the_same_in_all_dtypes(dtype, rtol):
    """Rounding may change what is chosen, but not what a choice is worth."""
    model = make_model(33, dtype=dtype)
    batch = random_batch(model, seed=1, limit=5, sentences=(5, 5))
    words = np.random.default_rng(0).integers(FIRST_WORD, 33, (5, 4))
    batch = batch._replace(
        max_lengths=np.full(5, 5, "int32"), prefix_ids=words.astype("int32")
    )

    found = run_fast(model, batch, 1)  # Without a graph.

    expected = run_plain(model, batch, 1)
    np.testing.assert_array_equal(found.ids[:, 0, :-1], words)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=rtol)
    assert found.scores.dtype == "float32"


@pytest.mark.parametrize("padding_id", [0, 2])
def test_the_ids_are_padded_to_the_given_length(padding_id):
    model = make_model(33)
    source_ids, *_ = random_batch(model, seed=5, limit=4)
    limits = np.full(len(source_ids), 3, "int32")
    options = SearchOptions(2, padding_id=padding_id)

    found = search_in_graph(model, source_ids, limits, options, max_length=6)

    shorter = search_in_graph(model, source_ids, limits, options)
    np.testing.assert_array_equal(found.ids[:, :, :3], shorter.ids)
    assert np.all(found.ids[:, :, 3:] == padding_id)


def test_neither_batch_mates_nor_order_nor_padding_change_a_translation():
    name = "post, sine"
    model = model_of(name)

    @settings(max_examples=8)
    @hypothesis.given(
        seed=seeds, more=st.integers(0, 5), random=st.randoms(note_method_calls=False)
    )
    def check(seed, more, random):
        randomize(model, seed % 7)
        batch = random_batch(model, seed, sentences=(2, 7))
        together = to_arrays(fast(name, batch, 4, 2))
        rows = list(range(len(batch.max_lengths)))
        random.shuffle(rows)
        some = batch.take(rows[: random.randint(1, len(rows))])
        padding = ((0, 0), (0, more))
        some = some._replace(source_ids=np.pad(some.source_ids, padding))

        found = fast(name, some, 4, 2)

        rows = rows[: len(some.max_lengths)]
        expected = type(together)(*[x[rows] for x in together])
        check_same(found, expected, atol=1e-5)

    check()


@pytest.mark.parametrize("length", [0, 5])
def test_a_batch_of_none_gives_none(length):
    batch = Batch(
        np.zeros((0, length), "int32"),
        np.zeros([0], "int32"),
        np.zeros([0], "float32"),
        np.zeros((0, 0), "int32"),
    )

    found = fast("post, sine", batch, 4, 3)

    assert [x.shape for x in found] == [(0, 3, 1), (0, 3), (0, 3), (0, 3)]


def test_a_batch_of_known_size_may_shrink():
    """Shapes, the beam size and the sources are known when it is traced."""
    name = "pre, sine"
    model = model_of(name)
    randomize(model, seed=4, end_scale=0)
    batch = random_batch(model, seed=8, sentences=(6, 6))
    batch = batch._replace(
        max_lengths=np.int32([1, 20, 2, 40, 3, 3]),
        length_penalty=np.full(6, 2, "float32"),
        prefix_ids=np.zeros((6, 0), "int32"),
    )
    search = tf.function(lambda: run_fast(model, batch, 4, 2))

    found = search()

    assert found.ids.shape == (6, 2, 40)
    assert found.lengths.numpy().max() == 40
    check_same(found, fast(name, batch, 4, 2), atol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_no_call_leaves_anything_to_another(beam_size):
    name = "post, sine"
    randomize(model_of(name), seed=4)
    batches = [random_batch(model_of(name), seed) for seed in range(6)]

    def translate(index):
        batch = batches[index % 6]
        if beam_size == 1:
            return to_arrays(greedy_search(name)(*batch))
        return to_arrays(fast(name, batch, beam_size, beam_size))

    alone = [translate(index) for index in range(6)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = list(pool.map(translate, range(48)))

    for index, found in enumerate(together):
        check_same(found, alone[index % 6], atol=1e-5)
