"""Tests of `explain` and `explain_beam`, run as the server runs them."""

import numpy as np
import pytest

from tests.helpers.oracle import encode
from tests.helpers.oracle import log_probabilities
from tests.helpers.oracle import penalty
from tests.helpers.oracle import split_heads
from tests.helpers.requests import ask
from tests.helpers.requests import read_beam
from tests.helpers.requests import strings
from tests.helpers.requests import with_knobs
from tests.helpers.sentences import SENTENCES

TEXTS = [s.encode() for s in SENTENCES]
TARGETS = [b"Two", *TEXTS[:0:-1]]
ATTENTION = (
    "encoder_attention",
    "decoder_attention",
    "encoder_decoder_attention",
)


@pytest.fixture(scope="module")
def explained(servable):
    return servable.predict(
        "explain", {"source": strings(TEXTS), "target": strings(TARGETS)}
    )


@pytest.fixture(scope="module")
def ids(tokenizer):
    return encode(tokenizer, TEXTS), encode(tokenizer, TARGETS)


def weights_of(attention, query, value, mask):
    """Returns where `query` looks, from the kernels (equation 1)."""
    queries, keys = (
        split_heads(np.array(x) @ np.array(dense.kernel), attention.num_heads)
        for x, dense in (
            (query, attention.query_projection),
            (value, attention.key_projection),
        )
    )
    logits = queries @ keys.swapaxes(2, 3) / np.sqrt(attention.key_dim)
    logits = np.where(mask, logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=3, keepdims=True))
    return weights / weights.sum(axis=3, keepdims=True)


def look(model, source_ids, target_ids):
    """Runs both stacks sub-layer by sub-layer; returns all weights.

    Returns:
        Lists, a layer each, of `(B, H, S, S)`, `(B, H, T, T)`, `(B, H, T, S)`.
    """
    source, target = source_ids > 0, target_ids > 0
    length = target_ids.shape[1]
    found = {name: [] for name in ATTENTION}
    x = model.embedding(source_ids)
    x = x + model.position_encoding(x)
    for layer in model.encoder.layers:
        mask = source[:, None, None]
        found[ATTENTION[0]].append(weights_of(layer.attention, x, x, mask))
        x = layer(x, mask=source)
    memory = x
    x = model.embedding(target_ids)
    x = x + model.position_encoding(x)
    for layer in model.decoder.layers:
        mask = target[:, None, None] & np.tri(length, dtype=bool)
        own = layer.self_attention
        found[ATTENTION[1]].append(weights_of(own, x, x, mask))
        y = own(x, x, value_mask=target, use_causal_mask=True)
        y = layer.self_attention_residual(x, y)
        mask = source[:, None, None]
        found[ATTENTION[2]].append(
            weights_of(layer.memory_attention, y, memory, mask)
        )
        x = layer(x, memory, target_mask=target, memory_mask=source)
    return found


def test_attention_is_that_of_every_layer_and_head(explained, model, ids):
    source, target = ids
    shifted = np.pad(target, [[0, 0], [1, 0]], constant_values=3)[:, :-1]
    shifted[target == 0] = 0

    expected = look(model, source, shifted)

    for name in ATTENTION:
        wanted = np.stack(expected[name], axis=1)
        real = source if name == "encoder_attention" else target
        wanted = np.where((real > 0)[:, None, None, :, None], wanted, 0)
        assert explained[name].shape == wanted.shape
        np.testing.assert_allclose(explained[name], wanted, atol=1e-5)


def test_nothing_looks_at_padding_or_ahead(explained, ids):
    source, target = (side > 0 for side in ids)
    for name, queries, keys in zip(
        ATTENTION,
        (source, target, target),
        (source, target, source),
        strict=True,
    ):
        rows = explained[name].sum(axis=4)
        wanted = np.broadcast_to(queries[:, None, None], rows.shape)
        np.testing.assert_allclose(rows, wanted, atol=1e-5)
        elsewhere = ~keys[:, None, None, None, :]
        assert not (explained[name] * elsewhere).any()
    assert not np.triu(explained["decoder_attention"], 1).any()


def test_pieces_and_confidence_are_those_of_the_model(
    explained, model, tokenizer, ids
):
    source, target = ids
    for name, side in (("source_tokens", source), ("target_tokens", target)):
        pieces = [
            [tokenizer.id_to_piece(int(i)) if i else "" for i in row]
            for row in side
        ]
        found = [[piece.decode() for piece in row] for row in explained[name]]
        assert found == pieces
    expected = log_probabilities(model, source, target)
    np.testing.assert_allclose(
        explained["token_log_probabilities"], expected, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        explained["score"],
        expected.sum(axis=1) / penalty((target > 0).sum(axis=1)),
        rtol=1e-5,
    )


def test_a_target_beyond_the_limit_is_cut_and_told(servable, model):
    limit = model.sequence_length  # In pieces: one ends the text.
    targets = [b" ".join([b"a"] * count) for count in (limit - 1, limit)]

    outputs = servable.predict(
        "explain",
        {"source": strings(TEXTS[:2]), "target": strings(targets)},
    )

    assert outputs["target_truncated"].tolist() == [False, True]
    for row in outputs["target_tokens"]:
        assert row.tolist() == ["▁a".encode()] * (limit - 1) + [b"</s>"]


def test_the_beam_holds_the_search(servable, tokenizer):
    """What `translate_nbest` answers is read from the trace alone."""
    texts = [*TEXTS, b"a"]

    beams = servable.predict("explain_beam", ask(texts))

    nbest = servable.predict("translate_nbest", with_knobs(texts))
    pruned = 0
    for place in range(len(texts)):
        beam = {name: value[place] for name, value in beams.items()}
        pruned += ((beam["parents"] >= 0) & ~beam["kept"]).sum()
        finished = read_beam(beam)[:3]
        valid = nbest["valid"][place]
        assert len(finished) == valid.sum() > 0
        np.testing.assert_allclose(
            [score for score, _ in finished],
            nbest["scores"][place][valid],
            rtol=1e-5,
        )
        lengths = nbest["lengths"][place][valid].tolist()
        assert [len(path) for _, path in finished] == lengths
        texts_read = [
            tokenizer.decode_pieces(list(path[:-1])).encode()
            for _, path in finished
        ]
        assert texts_read == nbest["translations"][place][valid].tolist()
        assert {path[-1] for _, path in finished} == {"</s>"}
    assert pruned > 20


def test_a_beam_of_nothing_is_empty(servable):
    beam = servable.predict("explain_beam", ask([b"", b" "]))

    assert all(value.size == 0 for value in beam.values())
    beam = servable.predict("explain_beam", ask([b"", b"A dog."]))
    assert (beam["parents"][0] == -1).all()
    assert (beam["tokens"][0] == b"").all()
    for name in ("log_probabilities", "kept", "ended", "penalties"):
        assert not beam[name][0].any()
        assert beam[name][1].any()
