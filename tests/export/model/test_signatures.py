"""Tests of every signature, run as the server runs it, against the model."""

import numpy as np
import pytest

from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_servable import ServerError
from tests.helpers.oracles.numpy_oracles import (
    encode,
    pieces_of,
    target_log_probabilities,
)
from tests.helpers.oracles.reference_searches import penalty
from tests.helpers.signature_requests import (
    REQUESTS,
    ask,
    assert_same,
    nbest_inputs,
    options_inputs,
    strings,
    to_rows,
)

TEXTS = [s.encode() for s in SENTENCES]


def test_missing_options_come_from_the_signature(servable):
    """The fixture was exported with beam 3, α 0.6 and 8 more tokens."""
    inputs = nbest_inputs(TEXTS, beam_size=3, alpha=0.6, extra=8)
    expected = servable.predict("translate_nbest", inputs)

    found = servable.predict("translate_nbest", ask(TEXTS))
    assert found.keys() == expected.keys()
    assert_same(found, expected)
    one = {**ask(TEXTS), "beam_size": np.int32(1)}
    found = servable.predict("translate_nbest", one)
    assert found["translation"].shape == (len(TEXTS), 1)


@pytest.mark.parametrize(
    "signature", ["translate_nbest", "sample", "translate_document"]
)
def test_no_translation_has_half_a_character(servable, signature):
    """The vocabulary consists of bytes, mostly, of which the model knows nothing."""
    outputs = servable.predict(signature, REQUESTS[signature](TEXTS))

    for text in outputs["translation"].ravel():
        assert "\N{REPLACEMENT CHARACTER}" not in text.decode()


def test_nbest_are_best_first_and_then_nothing(servable):
    texts = [*TEXTS, b"", b"a"]

    outputs = servable.predict("translate_nbest", nbest_inputs(texts, 5))
    default = servable.predict("serving_default", ask(texts))
    first = servable.predict("translate_nbest", nbest_inputs(texts))

    np.testing.assert_array_equal(first["translation"][:, 0], default["translation"])
    np.testing.assert_allclose(first["score"][:, 0], default["score"], atol=1e-5)
    for row in to_rows(outputs):
        valid = row["valid"]
        count = valid.sum()
        assert valid[:count].all()
        assert (np.diff(row["score"][:count]) <= 0).all()
        for name, filler in (("translation", b""), ("score", 0)):
            assert (row[name][~valid] == filler).all()
        assert (row["length"][~valid] == 0).all()
    assert (outputs["length"][:-2] > 0).all()
    # Nothing to translate: one translation, which is empty.
    assert outputs["valid"][-2].tolist() == [True, *[False] * 4]
    assert outputs["translation"][-2, 0] == b""


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        ("beam_size", 0, "beam_size must be between 1 and 100"),
        ("beam_size", 5000, "beam_size must be between 1 and 100"),
        ("alpha", np.nan, "length_penalty must be between -10 and 10"),
        ("alpha", -np.inf, "length_penalty must be between -10 and 10"),
        ("extra", 1001, "max_extra_length must be between 0 and 1000"),
    ],
)
def test_knobs_give_one_clear_error(servable, knob, value, message):
    inputs = nbest_inputs(TEXTS[:2], **{knob: value})

    with pytest.raises(ServerError) as error:
        servable.predict("translate_nbest", inputs)

    assert error.value.code.name == "INVALID_ARGUMENT"
    assert f"{message}. Received:" in str(error.value)
    assert f"[{value:g}]" in str(error.value)


@pytest.mark.parametrize(
    ("signature", "inputs"),
    [
        ("translate_options", "text, length_penalty, max_extra_length, prefix"),
        ("sample", "text, temperature, top_k, top_p, seed"),
        *((name, "source, target") for name in ("score", "align", "explain")),
    ],
)
def test_all_inputs_have_as_many_rows(servable, signature, inputs):
    request = REQUESTS[signature](TEXTS[:3])
    last = inputs.split(", ")[-1]
    request[last] = request[last][:1]

    with pytest.raises(ServerError) as error:
        servable.predict(signature, request)

    message = f"{inputs} must have as many rows each. Received:"
    assert message in str(error.value)


def test_each_row_has_its_own_penalty_and_limit(servable):
    alpha, extra = [0.0, 0.5, 1.0, 3.0], [0, 1, 5, 9]
    text = TEXTS[0]

    outputs = servable.predict(
        "translate_options", options_inputs([text] * 4, alpha, extra)
    )

    for row, a, e in zip(to_rows(outputs), alpha, extra, strict=True):
        found = servable.predict("translate_nbest", nbest_inputs([text], 3, a, e))
        assert found["translation"][0, 0] == row["translation"]
        assert found["score"][0, 0] == pytest.approx(row["score"], abs=1e-5)
    assert len(set(outputs["score"])) > 2


def test_a_prefix_beyond_the_limit_is_cut_and_told(servable):
    long = b" ".join(TEXTS * 9)
    texts = [TEXTS[1], TEXTS[1], b""]

    outputs = servable.predict(
        "translate_options", options_inputs(texts, prefixes=[long, b"Two", long])
    )

    assert outputs["truncated"][[0, 2]].tolist() == [True, False]
    assert long.startswith(outputs["translation"][0][:40])
    assert outputs["translation"][1].startswith(b"Two")


@pytest.mark.parametrize("signature", ["score", "align", "explain"])
def test_a_pair_beyond_the_limit_is_cut_and_told(servable, signature):
    long, short = b" ".join(TEXTS * 9), TEXTS[0]
    pairs = {
        "source": np.array([short, long, short], object),
        "target": np.array([short, short, long], object),
    }

    outputs = servable.predict(signature, pairs)

    assert outputs["truncated"].tolist() == [False, True, True]


def test_best_translations_say_what_was_cut(servable):
    texts = [b" ".join(TEXTS * 9), b"", *TEXTS]
    expected = servable.predict("serving_default", ask(texts))["truncated"]
    assert expected[0]
    assert not expected.all()

    several = servable.predict("translate_nbest", ask(texts))

    np.testing.assert_array_equal(several["truncated"][:, 0], expected)
    assert several["truncated"][0].all()


def test_scores_are_the_log_probabilities_of_the_model(servable, model, tokenizer):
    targets = [b"Two", *TEXTS[:0:-1]]
    source, target = encode(tokenizer, TEXTS), encode(tokenizer, targets)
    expected = target_log_probabilities(model, source, target)

    outputs = servable.predict(
        "score", {"source": strings(TEXTS), "target": strings(targets)}
    )

    found = outputs["token_log_probabilities"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    total = expected.sum(axis=1)
    np.testing.assert_allclose(outputs["log_probability"], total, rtol=1e-5)
    total /= penalty((target > 0).sum(axis=1))
    np.testing.assert_allclose(outputs["score"], total, rtol=1e-5)
    assert outputs["tokens"].tolist() == pieces_of(tokenizer, target)


def test_alignments_are_the_attention_of_the_last_of_two_layers(servable, tokenizer):
    targets = [b"Two", *TEXTS[:0:-1]]
    source, target = encode(tokenizer, TEXTS), encode(tokenizer, targets)
    pairs = {"source": strings(TEXTS), "target": strings(targets)}
    # Whose weights are compared with the kernels elsewhere.
    layers = servable.predict("explain", pairs)["encoder_decoder_attention"]

    outputs = servable.predict("align", pairs)

    attention = outputs["attention"]
    expected = np.mean(layers[:, 1], axis=1)
    np.testing.assert_allclose(attention, expected, atol=1e-5)
    np.testing.assert_allclose(attention.sum(axis=2), target > 0, rtol=1e-5, atol=1e-6)
    on_padding = attention * (source == 0)[:, None, :]
    np.testing.assert_array_equal(on_padding, 0)
    np.testing.assert_array_equal(
        outputs["alignment"], np.where(target > 0, attention.argmax(axis=2), -1)
    )
    for name, ids in (("source_tokens", source), ("target_tokens", target)):
        assert outputs[name].tolist() == pieces_of(tokenizer, ids)
