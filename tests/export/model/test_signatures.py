"""Tests of every signature, run as the server runs it, against the model."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import padding_mask
from tests.helpers.batching_session import ServerError
from tests.helpers.oracle import encode
from tests.helpers.oracle import log_probabilities
from tests.helpers.oracle import penalty
from tests.helpers.oracle import split_heads
from tests.helpers.requests import ALPHA
from tests.helpers.requests import EXTRA
from tests.helpers.requests import ask
from tests.helpers.requests import differences
from tests.helpers.requests import rows
from tests.helpers.requests import strings
from tests.helpers.requests import with_knobs
from tests.helpers.requests import with_options
from tests.helpers.sentences import SENTENCES

TEXTS = [s.encode() for s in SENTENCES]


def test_signatures_are_those_documented(servable):
    def columns(infos):
        return {
            name: (
                tf.dtypes.as_dtype(info.dtype).name,
                len(info.tensor_shape.dim),
            )
            for name, info in infos.items()
        }

    text = {"text": ("string", 1)}
    translation = {
        "translation": ("string", 1),
        "score": ("float32", 1),
        "truncated": ("bool", 1),
    }
    pair = {"source": ("string", 1), "target": ("string", 1)}
    expected = {
        "serving_default": (text, translation),
        "translate_greedy": (text, translation),
        "translate_nbest": (
            {
                **text,
                "beam_size": ("int32", 0),
                "length_penalty": ("float32", 0),
                "max_extra_length": ("int32", 0),
            },
            {
                "translations": ("string", 2),
                "scores": ("float32", 2),
                "lengths": ("int32", 2),
                "truncated": ("bool", 2),
                "valid": ("bool", 2),
            },
        ),
        "translate_options": (
            {
                **text,
                "length_penalty": ("float32", 1),
                "max_extra_length": ("int32", 1),
                "prefix": ("string", 1),
            },
            {**translation, "error": ("string", 1)},
        ),
        "translate_ids": (
            {"ids": ("int32", 2)},
            {
                "ids": ("int32", 2),
                "scores": ("float32", 1),
                "truncated": ("bool", 1),
            },
        ),
        "score": (
            pair,
            {
                "log_probability": ("float32", 1),
                "token_log_probabilities": ("float32", 2),
                "tokens": ("string", 2),
                "truncated": ("bool", 1),
            },
        ),
        "align": (
            pair,
            {
                "attention": ("float32", 3),
                "alignment": ("int32", 2),
                "source_tokens": ("string", 2),
                "target_tokens": ("string", 2),
                "truncated": ("bool", 1),
            },
        ),
        "explain": (
            pair,
            {
                "encoder_attention": ("float32", 5),
                "decoder_attention": ("float32", 5),
                "encoder_decoder_attention": ("float32", 5),
                "source_tokens": ("string", 2),
                "target_tokens": ("string", 2),
                "token_log_probabilities": ("float32", 2),
                "score": ("float32", 1),
                "target_truncated": ("bool", 1),
            },
        ),
        "explain_beam": (
            text,
            {
                "tokens": ("string", 3),
                "parents": ("int32", 3),
                "log_probabilities": ("float32", 3),
                "kept": ("bool", 3),
                "ended": ("bool", 3),
                "penalties": ("float32", 2),
            },
        ),
    }

    found = {
        name: (columns(signature.inputs), columns(signature.outputs))
        for name, signature in servable.signatures.items()
        if not name.startswith("__")  # TensorFlow's own, to initialize.
    }

    assert found == expected


def test_greedy_takes_the_best_token_each_time(servable, model, tokenizer):
    source = encode(tokenizer, TEXTS)
    lengths = (source > 0).sum(axis=1)
    target = np.zeros([len(TEXTS), max(lengths) + EXTRA + 1], np.int32)
    target[:, 0] = 3
    # One shape for all steps: what follows a position is not looked at.
    logits_of = tf.function(
        lambda ids: model({"source_ids": source, "target_ids": ids})
    )
    for step in range(target.shape[1] - 1):
        logits = np.array(logits_of(target)[:, step])
        logits[:, [0, 3]] = -np.inf
        target[:, step + 1] = logits.argmax(axis=1)

    outputs = servable.predict("translate_greedy", ask(TEXTS))

    for place, row in enumerate(rows(outputs)):
        ids = target[place, 1 : lengths[place] + EXTRA + 1].tolist()
        cut = 1 not in ids
        ids = ids[:-1] if cut else ids[: ids.index(1)]
        total = log_probabilities(
            model, source[place : place + 1], np.array([[*ids, 1]])
        ).sum()
        assert row["translation"].decode() == tokenizer.decode(ids)
        assert row["truncated"] == cut
        assert row["score"] == pytest.approx(
            total / penalty(len(ids) + 1), rel=1e-5
        )


def test_ids_translate_as_their_text(servable, model, tokenizer):
    source = encode(tokenizer, TEXTS)
    expected = servable.predict("serving_default", ask(TEXTS))

    outputs = servable.predict(
        "translate_ids", {"ids": source.astype(np.int32)}
    )

    ids = outputs["ids"]
    np.testing.assert_allclose(outputs["scores"], expected["score"], atol=1e-5)
    for row, translation in zip(ids, expected["translation"], strict=True):
        kept = row[row != 0].tolist()
        assert kept[-1] == 1
        assert tokenizer.decode(kept[:-1]) == translation.decode()
    total = log_probabilities(model, source, ids).sum(axis=1)
    np.testing.assert_allclose(
        outputs["scores"], total / penalty((ids > 0).sum(axis=1)), rtol=1e-5
    )


def test_ids_after_the_end_are_padding(servable):
    """The server's option pads with the first element, whatever it is."""
    ids = np.array([[9, 5, 7, 1], [8, 1, 8, 8], [1, 5, 1, 6]], np.int32)
    clean = np.array([[9, 5, 7, 1], [8, 1, 0, 0], [1, 0, 0, 0]], np.int32)

    outputs = servable.predict("translate_ids", {"ids": ids})
    expected = servable.predict("translate_ids", {"ids": clean})

    np.testing.assert_array_equal(outputs["ids"], expected["ids"])
    np.testing.assert_array_equal(outputs["scores"], expected["scores"])


def test_ids_without_an_end_get_one(servable):
    ids = np.array([[9, 5, 7, 8], [9, 5, 0, 0], [9, 0, 5, 1]], np.int32)
    ended = np.array(
        [[9, 5, 7, 8, 1], [9, 5, 1, 0, 0], [9, 1, 0, 0, 0]], np.int32
    )

    outputs = servable.predict("translate_ids", {"ids": ids})
    expected = servable.predict("translate_ids", {"ids": ended})

    np.testing.assert_array_equal(outputs["ids"], expected["ids"])
    np.testing.assert_array_equal(outputs["scores"], expected["scores"])


def test_ids_of_no_vocabulary_are_unknown(servable):
    wild = np.array([[-1, 9, 1], [2**31 - 1, 9, 1], [2, 9, 1]], np.int32)

    outputs = servable.predict("translate_ids", {"ids": wild})

    assert (outputs["ids"] == outputs["ids"][2]).all()


def test_nbest_are_distinct_and_best_first(servable):
    texts = [*TEXTS, b"", b"a"]

    outputs = servable.predict("translate_nbest", with_knobs(texts, 5))
    default = servable.predict("serving_default", ask(texts))
    first = servable.predict("translate_nbest", with_knobs(texts))

    np.testing.assert_array_equal(
        first["translations"][:, 0], default["translation"]
    )
    np.testing.assert_allclose(
        first["scores"][:, 0], default["score"], atol=1e-5
    )
    for row in rows(outputs):
        valid = row["valid"]
        count = valid.sum()
        assert valid[:count].all()
        assert (np.diff(row["scores"][:count]) <= 0).all()
        found = zip(
            row["translations"][valid],
            row["lengths"][valid],
            row["scores"][valid],
            strict=True,
        )
        assert len(set(found)) == count
        for name, filler in (("translations", b""), ("scores", 0)):
            assert (row[name][~valid] == filler).all()
        assert (row["lengths"][~valid] == 0).all()
    assert (outputs["lengths"][:-2] > 0).all()
    # Nothing to translate: one translation, which is empty.
    assert outputs["valid"][-2].tolist() == [True, *[False] * 4]
    assert outputs["translations"][-2, 0] == b""


def test_nbest_are_the_best_of_all_that_the_beams_see(
    servable, model, tokenizer
):
    """A hundred first tokens, and then the end: translations of two tokens."""
    pieces = (tokenizer.decode([i]) for i in range(4, 330))
    text = next(p for p in pieces if len(tokenizer.encode(p)) == 1).encode()
    source = encode(tokenizer, [text])  # Of two tokens, with the end.
    first = np.array([1, 2, *range(4, 330)])
    target = np.stack([first, first != 1], axis=1).astype(int)  # Or the end.
    all_sources = np.repeat(source, len(first), axis=0)
    found = log_probabilities(model, all_sources, target)
    seen = np.argsort(-found[:, 0])[:100]
    values = found.sum(axis=1) / penalty((target > 0).sum(axis=1), 0.5)
    best = seen[np.argsort(-values[seen])]

    outputs = servable.predict(
        "translate_nbest", with_knobs([text], 100, 0.5, 0)
    )

    np.testing.assert_allclose(outputs["scores"][0], values[best], rtol=1e-5)
    expected = [tokenizer.decode([i]).encode() for i in first[best].tolist()]
    assert outputs["translations"][0].tolist() == expected
    assert outputs["valid"].all()


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        ("beam_size", 0, "beam_size must be between 1 and 100"),
        ("beam_size", -1, "beam_size must be between 1 and 100"),
        ("beam_size", 5000, "beam_size must be between 1 and 100"),
        ("alpha", np.nan, "length_penalty must be between -10 and 10"),
        ("alpha", np.inf, "length_penalty must be between -10 and 10"),
        ("alpha", -1000, "length_penalty must be between -10 and 10"),
        ("alpha", -np.inf, "length_penalty must be between -10 and 10"),
        ("extra", -1, "max_extra_length must be between 0 and 1000"),
        ("extra", 1001, "max_extra_length must be between 0 and 1000"),
    ],
)
def test_knobs_give_one_clear_error(servable, knob, value, message):
    inputs = with_knobs(TEXTS[:2], **{knob: value})

    with pytest.raises(ServerError) as error:
        servable.predict("translate_nbest", inputs)

    assert error.value.code.name == "INVALID_ARGUMENT"
    assert f"{message}. Received:" in str(error.value)
    assert f"[{value:g}]" in str(error.value)


def test_options_default_to_serving_default(servable):
    outputs = servable.predict("translate_options", with_options(TEXTS))
    expected = servable.predict("serving_default", ask(TEXTS))

    assert (outputs.pop("error") == b"").all()
    for row, alone in zip(rows(outputs), rows(expected), strict=True):
        assert not differences(row, alone)


def test_a_bad_row_has_its_error_and_the_others_none(servable):
    texts = TEXTS + TEXTS[:1]
    alpha = [0.6, np.nan, 2.0, 1e30, 0.0, 1.0, -np.inf]
    extra = [8, 3, -1, 0, 1001, 2, -1]
    bad = [False, True, True, True, True, False, True]

    outputs = servable.predict(
        "translate_options", with_options(texts, alpha, extra)
    )

    assert [error != b"" for error in outputs["error"]] == bad
    assert b"length_penalty must be between -10 and 10" in outputs["error"][1]
    assert b"between 0 and 1000. Received: -1" in outputs["error"][2]
    assert b"Received: 1001" in outputs["error"][4]
    for place, row in enumerate(rows(outputs)):
        if bad[place]:
            assert row["translation"] == b""
            assert row["score"] == 0
            assert not row["truncated"]
        else:
            alone = servable.predict(
                "translate_options",
                with_options([texts[place]], alpha[place], extra[place]),
            )
            assert not differences(row, rows(alone)[0])


def test_a_row_without_a_translation_is_not_truncated(servable):
    long = b" ".join(TEXTS * 9)
    inputs = with_options(
        [TEXTS[0], b"", TEXTS[0]], [np.nan, ALPHA, ALPHA], prefixes=[long] * 3
    )

    outputs = servable.predict("translate_options", inputs)

    assert outputs["truncated"].tolist() == [False, False, True]


@pytest.mark.parametrize("name", ["length_penalty", "prefix"])
def test_options_have_as_many_rows_as_texts(servable, name):
    inputs = with_options(TEXTS[:3])
    inputs[name] = inputs[name][:1]

    with pytest.raises(ServerError) as error:
        servable.predict("translate_options", inputs)

    assert (
        "text, length_penalty, max_extra_length, prefix must have as many rows "
        "each. Received:"
    ) in str(error.value)


@pytest.mark.parametrize("signature", ["score", "align", "explain"])
def test_a_pair_has_as_many_sources_as_targets(servable, signature):
    pairs = {"source": strings(TEXTS[:3]), "target": strings(TEXTS[:1])}

    with pytest.raises(ServerError) as error:
        servable.predict(signature, pairs)

    message = "source, target must have as many rows each. Received:"
    assert message in str(error.value)


def test_each_row_has_its_own_penalty_and_limit(servable):
    alpha, extra = [0.0, 0.5, 1.0, 3.0], [0, 1, 5, 9]
    text = TEXTS[0]

    outputs = servable.predict(
        "translate_options", with_options([text] * 4, alpha, extra)
    )

    for row, a, e in zip(rows(outputs), alpha, extra, strict=True):
        found = servable.predict("translate_nbest", with_knobs([text], 3, a, e))
        assert found["translations"][0, 0] == row["translation"]
        assert found["scores"][0, 0] == pytest.approx(row["score"], abs=1e-5)
    assert len(set(outputs["score"])) > 2


def test_a_translation_begins_with_its_prefix(servable, model, tokenizer):
    prefixes = [b"grass.", b"sleep. cats", b"A", b"", b"brown dog", b"horse"]

    outputs = servable.predict(
        "translate_options", with_options(TEXTS, prefixes=prefixes)
    )
    free = servable.predict("serving_default", ask(TEXTS))

    for row, prefix in zip(rows(outputs), prefixes, strict=True):
        assert row["translation"].startswith(prefix)
    assert outputs["translation"][3] == free["translation"][3]
    changed = outputs["translation"] != free["translation"]
    assert changed[[0, 1, 2, 4, 5]].any()


def test_a_prefix_beyond_the_limit_is_cut_and_told(servable):
    long = b" ".join(TEXTS * 9)
    texts = [b"Two cats sleep.", b"Two cats sleep."]

    outputs = servable.predict(
        "translate_options", with_options(texts, prefixes=[long, b"Two"])
    )

    assert outputs["truncated"][0]
    assert long.startswith(outputs["translation"][0][:40])
    assert outputs["translation"][1].startswith(b"Two")


@pytest.mark.parametrize("signature", ["score", "align"])
def test_a_pair_beyond_the_limit_is_cut_and_told(servable, signature):
    long, short = b" ".join(TEXTS * 9), TEXTS[0]
    pairs = {
        "source": np.array([short, long, short], object),
        "target": np.array([short, short, long], object),
    }

    outputs = servable.predict(signature, pairs)

    assert outputs["truncated"].tolist() == [False, True, True]


def test_ids_and_best_translations_say_what_was_cut(servable, model, tokenizer):
    texts = [b" ".join(TEXTS * 9), b"", *TEXTS]
    expected = servable.predict("serving_default", ask(texts))["truncated"]
    assert expected[0]
    assert not expected.all()

    found = servable.predict(
        "translate_ids", {"ids": encode(tokenizer, texts).astype(np.int32)}
    )
    several = servable.predict("translate_nbest", ask(texts))

    np.testing.assert_array_equal(found["truncated"], expected)
    np.testing.assert_array_equal(several["truncated"][:, 0], expected)
    assert several["truncated"][0].all()


def test_scores_are_the_log_probabilities_of_the_model(
    servable, model, tokenizer
):
    targets = [b"Two", *TEXTS[:0:-1]]
    source, target = encode(tokenizer, TEXTS), encode(tokenizer, targets)
    expected = log_probabilities(model, source, target)

    outputs = servable.predict(
        "score", {"source": strings(TEXTS), "target": strings(targets)}
    )

    found = outputs["token_log_probabilities"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        outputs["log_probability"], expected.sum(axis=1), rtol=1e-5
    )
    for row, ids in zip(outputs["tokens"], target, strict=True):
        pieces = [tokenizer.id_to_piece(int(i)) for i in ids if i]
        padding = [""] * (len(ids) - len(pieces))
        assert [piece.decode() for piece in row] == pieces + padding


def attend(model, source_ids, target_ids, place):
    """Runs the decoder layer by layer, up to the attention of layer `place`.

    Returns:
        The mean over the heads of its attention to the source, `(B, T, S)`,
        from the kernels (Section 3.2.1, equation 1).
    """
    memory = model.encode(source_ids)
    mask = padding_mask(source_ids)
    x = model.embedding(target_ids)
    x = x + model.position_encoding(x)
    target_mask = padding_mask(target_ids)
    for layer in model.decoder.layers[:place]:
        x = layer(x, memory, target_mask=target_mask, memory_mask=mask)
    layer = model.decoder.layers[place]
    y = layer.self_attention(x, x, value_mask=target_mask, use_causal_mask=True)
    x = layer.self_attention_residual(x, y)
    attention = layer.memory_attention
    queries, keys = (
        split_heads(
            np.array(value) @ np.array(dense.kernel),
            model.architecture.num_heads,
        )
        for value, dense in (
            (x, attention.query_projection),
            (memory, attention.key_projection),
        )
    )
    logits = queries @ keys.swapaxes(2, 3) / np.sqrt(model.architecture.key_dim)
    logits = np.where(np.array(mask)[:, None, None], logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=3, keepdims=True))
    weights /= weights.sum(axis=3, keepdims=True)
    return weights.mean(axis=1)


def test_alignments_are_the_attention_of_the_last_layer_but_one(
    servable, model, tokenizer
):
    targets = [b"Two", *TEXTS[:0:-1]]
    source, target = encode(tokenizer, TEXTS), encode(tokenizer, targets)
    shifted = np.pad(target, [[0, 0], [1, 0]], constant_values=3)[:, :-1]
    shifted[target == 0] = 0
    expected = attend(model, source, shifted, place=0)
    expected *= (target > 0)[:, :, None]

    outputs = servable.predict(
        "align", {"source": strings(TEXTS), "target": strings(targets)}
    )

    attention = outputs["attention"]
    np.testing.assert_allclose(attention, expected, atol=1e-5)
    np.testing.assert_allclose(
        attention.sum(axis=2), target > 0, rtol=1e-5, atol=1e-6
    )
    on_padding = attention * (source == 0)[:, None, :]
    np.testing.assert_array_equal(on_padding, 0)
    np.testing.assert_array_equal(
        outputs["alignment"],
        np.where(target > 0, attention.argmax(axis=2), -1),
    )
    for name, ids in (("source_tokens", source), ("target_tokens", target)):
        pieces = [
            [tokenizer.id_to_piece(int(i)) if i else "" for i in row]
            for row in ids
        ]
        found = [[piece.decode() for piece in row] for row in outputs[name]]
        assert found == pieces


def test_alignments_of_nothing_are_nothing(servable):
    outputs = servable.predict(
        "align", {"source": strings([b"", b"a"]), "target": strings([b"", b""])}
    )

    assert np.isfinite(outputs["attention"]).all()
    assert outputs["source_tokens"][0, 0] == b"</s>"
