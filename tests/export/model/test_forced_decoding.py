"""Tests of `align`, `explain` and `explain_beam`, and of a custom model's scores."""

import numpy as np
import pytest

from export.bundle.run_loading import read_run
from export.model.forced_decoding import ForcedDecoder
from export.model.search import SearchSettings
from export.model.tokenized_model import TextModel
from litert_translator.translator import decode
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.oracles.numpy_oracles import (
    encode,
    pieces_of,
    softmax,
    target_log_probabilities,
)
from tests.helpers.other_systems.converted_runs import CustomOutputModel
from tests.helpers.signature_requests import (
    ask,
    hypotheses_of_beam,
    nbest_inputs,
    strings,
)

TEXTS = [s.encode() for s in SENTENCES]
TARGETS = [b"Two", *TEXTS[:0:-1]]
ATTENTION = ("encoder_attention", "decoder_attention", "encoder_decoder_attention")


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

    def project(x, dense):
        x = np.array(x) @ np.array(dense.kernel)
        return x.reshape(*x.shape[:2], attention.num_heads, -1).swapaxes(1, 2)

    keys = project(value, attention.key_projection).swapaxes(2, 3)
    logits = project(query, attention.query_projection) @ keys
    return softmax(np.where(mask, logits / np.sqrt(attention.key_dim), -np.inf))


def look(model, source_ids, target_ids):
    """Runs both stacks by sub-layers; returns all weights, a list of layers each."""
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
        found[ATTENTION[2]].append(weights_of(layer.memory_attention, y, memory, mask))
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


def test_pieces_and_confidence_are_those_of_score(explained, servable, tokenizer, ids):
    source, _ = ids
    expected = servable.predict(
        "score", {"source": strings(TEXTS), "target": strings(TARGETS)}
    )

    found = explained["source_tokens"]
    assert found.tolist() == pieces_of(tokenizer, source)
    np.testing.assert_array_equal(explained["target_tokens"], expected["tokens"])
    for name in ("token_log_probabilities", "score"):
        np.testing.assert_allclose(
            explained[name], expected[name], rtol=1e-5, atol=1e-5
        )


def test_the_beam_holds_the_search(servable, tokenizer):
    """Computes the outputs of `translate_nbest` from the trace alone."""
    texts = [*TEXTS, b"a"]

    beams = servable.predict("explain_beam", ask(texts))

    nbest = servable.predict("translate_nbest", nbest_inputs(texts))
    pruned = 0
    for place in range(len(texts)):
        beam = {name: value[place] for name, value in beams.items()}
        pruned += ((beam["parents"] >= 0) & ~beam["kept"]).sum()
        finished = hypotheses_of_beam(beam)[:3]
        valid = nbest["valid"][place]
        assert len(finished) == valid.sum() > 0
        np.testing.assert_allclose(
            [score for score, _ in finished], nbest["score"][place][valid], rtol=1e-5
        )
        lengths = nbest["length"][place][valid].tolist()
        assert [len(path) for _, path in finished] == lengths
        ids = [tokenizer.piece_to_id(list(path[:-1])) for _, path in finished]
        texts_read = [decode(tokenizer, row).encode() for row in ids]
        assert texts_read == nbest["translation"][place][valid].tolist()
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


def test_scores_are_those_of_a_custom_output_layer(run_dir, tokenizer):
    trained, protos = read_run(run_dir)
    model = CustomOutputModel(
        trained.vocabulary_size, trained.architecture, trained.sequence_length
    )
    model.build()
    texts = TEXTS[:2]

    decoder = ForcedDecoder(TextModel(model, protos), SearchSettings())
    found = decoder.score(texts, texts[::-1])["token_log_probabilities"]

    sides = encode(tokenizer, texts), encode(tokenizer, texts[::-1])
    expected = target_log_probabilities(model, *sides)
    np.testing.assert_allclose(found, expected, atol=1e-4)
