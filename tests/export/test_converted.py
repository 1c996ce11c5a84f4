"""Everything of `export`, on a run of `convert` that is in nothing the paper's."""

import numpy as np
import pytest
import tensorflow as tf

import export.__main__ as export_command
from export import check
from keras_transformer import SearchOptions, SubwordTokenizer, Transformer
from keras_transformer.search.transformer_search import search_by_layers
from tests.helpers import chromium
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_servable import Servable
from tests.helpers.other_systems.converted_runs import DECODING, write_converted_run
from translate.report.explanation_page import (
    RECURRENT_DECODER_NOTE,
    describe_translation,
    render,
)

EXTRA = 8
# Differences due to two tokenizers and the recurrence.
SIGNATURES = (
    *("serving_default", "translate_options", "score"),
    *("align", "explain", "explain_beam"),
)
TARGETS = [sentence[::-1] for sentence in SENTENCES]

pytestmark = pytest.mark.slow  # Its own export, and each signature anew.


@pytest.fixture(scope="module")
def model(run_dir):
    return Transformer.from_pretrained(run_dir)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted") / "run"
    write_converted_run(folder)
    return folder


@pytest.fixture(scope="module")
def wordy_run_dir(tmp_path_factory):
    """A run whose tokenizers changed places: targets now have too many."""
    folder = tmp_path_factory.mktemp("wordy") / "run"
    write_converted_run(folder, decoder_mixer="attention")
    (folder / "tokenizer.model").rename(folder / "larger")
    (folder / "target_tokenizer.model").rename(folder / "tokenizer.model")
    (folder / "larger").rename(folder / "target_tokenizer.model")
    return folder


@pytest.fixture(scope="module")
def tokenizer(run_dir):
    return SubwordTokenizer.from_pretrained(run_dir)


@pytest.fixture(scope="module")
def converted_dir(run_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted_export")
    options = [f"--run-dir={run_dir}", f"--export-dir={folder}", "--signatures"]
    export_command.main([*options, *SIGNATURES, f"--max-extra-length={EXTRA}"])
    return folder


@pytest.fixture(scope="module")
def served(converted_dir):
    return Servable(converted_dir)


@pytest.fixture(scope="module")
def data(served):
    def ask(name, **texts):
        inputs = {key: np.array([text]) for key, text in texts.items()}
        outputs = served.predict(name, inputs)
        return {key: value[0] for key, value in outputs.items()}

    return describe_translation(ask, SENTENCES[1].encode())


def encode(lines):
    return np.array([line.encode() for line in lines], object)


@pytest.mark.parametrize("format", export_command.PRECISIONS)
def test_refuses_the_tokenizer_of_another_model(
    format, wordy_run_dir, tmp_path, refused
):
    options = f"--run-dir={wordy_run_dir}", f"--export-dir={tmp_path / 'export'}"
    line = refused(export_command, *options, f"--format={format}")

    assert "tokenizer of targets may not have more subwords" in line


def test_a_session_translates_as_the_layers_do(served, model, tokenizer):
    source_ids = tokenizer.tokenize(SENTENCES).to_tensor()

    outputs = served.predict("serving_default", {"text": encode(SENTENCES)})

    lengths = tf.math.count_nonzero(source_ids, axis=1, dtype=tf.int32)
    options = SearchOptions(num_hypotheses=1, **DECODING)
    expected = search_by_layers(model, source_ids, lengths + EXTRA, options)
    np.testing.assert_allclose(outputs["score"], expected.scores[:, 0], atol=1e-4)
    texts = tokenizer.detokenize(expected.ids[:, 0]).numpy()
    assert outputs["translation"].tolist() == texts.tolist()
    assert len(set(texts)) > 3
    lengths = expected.lengths.numpy()
    assert lengths.min() < lengths.max()


def test_pairs_are_read_by_a_tokenizer_a_side(served, model, tokenizer):
    pair = {"source": encode(SENTENCES), "target": encode(TARGETS)}

    scored = served.predict("score", pair)
    aligned = served.predict("align", pair)

    sources = tokenizer.tokenize(SENTENCES)
    targets = tokenizer.tokenize_targets(TARGETS)
    labels = targets.to_tensor()
    begun = tf.pad(labels, [[0, 0], [1, 0]], constant_values=3)[:, :-1]
    logits = model({"source_ids": sources.to_tensor(), "target_ids": begun})
    found = tf.gather(tf.nn.log_softmax(logits), labels, batch_dims=2)
    found = tf.where(labels == 0, 0.0, found)
    np.testing.assert_allclose(scored["token_log_probabilities"], found, atol=1e-4)
    lengths = tf.cast(targets.row_lengths(), tf.float32)
    np.testing.assert_allclose(
        scored["score"], tf.reduce_sum(found, 1) / lengths**0.9, atol=1e-4
    )
    for name, pieces in (
        ("source_tokens", tokenizer.source_id_to_piece(sources)),
        ("target_tokens", tokenizer.id_to_piece(targets)),
    ):
        np.testing.assert_array_equal(aligned[name], pieces.to_tensor(b""))
    assert (aligned["alignment"] >= 0).any(axis=1).all()


def test_a_prefix_is_of_the_target(served, model, tokenizer):
    prefix = TARGETS[1][:5]
    rows = {
        "text": encode(SENTENCES[1:2]),
        "length_penalty": np.array([0.2], np.float32),
        "max_extra_length": np.array([EXTRA], np.int32),
        "prefix": encode([prefix]),
    }

    outputs = served.predict("translate_options", rows)

    source_ids = tokenizer.tokenize(SENTENCES[1:2]).to_tensor()
    expected = search_by_layers(
        model,
        source_ids,
        tf.shape(source_ids)[1:] + EXTRA,
        SearchOptions(3, 0.2, 1, penalty_offset=0),
        tokenizer.tokenize_targets([prefix]).to_tensor()[:, :-1],
    )
    assert outputs["translation"][0].startswith(prefix.encode())
    assert outputs["translation"] == tokenizer.detokenize(expected.ids[:, 0])
    np.testing.assert_allclose(outputs["score"], expected.scores[0], atol=1e-4)


def test_explains_a_recurrence_with_zeros(served, model):
    pair = {"source": encode(SENTENCES[:2]), "target": encode(TARGETS[:2])}
    outputs = served.predict("explain", pair)
    beam = served.predict("explain_beam", {"text": encode(SENTENCES[:1])})

    batch, sources = outputs["source_tokens"].shape
    targets = outputs["target_tokens"].shape[1]
    heads = model.architecture.num_heads
    shapes = {
        "encoder_attention": (batch, 3, heads, sources, sources),
        "decoder_attention": (batch, 2, heads, targets, targets),
        "encoder_decoder_attention": (batch, 2, heads, targets, sources),
    }
    assert {name: outputs[name].shape for name in shapes} == shapes
    assert not outputs["decoder_attention"].any()
    steps = np.arange(beam["penalties"].shape[1]) + 1
    np.testing.assert_allclose(beam["penalties"][0], steps**0.9, rtol=1e-5)


@pytest.mark.peers("chromium")
def test_a_browser_draws_stacks_of_different_depth(data, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(render(data), encoding="utf-8")
    shown = (
        "[[...document.querySelectorAll('#layer option:enabled')].length,"
        " document.querySelectorAll('#overview button').length,"
        " document.getElementById('layer').value]"
    )

    with chromium.browse(tmp_path / "profile") as page:
        page.open(path)
        kinds = page.evaluate("[...document.getElementById('kind').options].length")
        seen = [page.evaluate(shown)]
        for selector, value in (
            *(("#kind", "encoder_attention"), ("#layer", 2)),
            ("#kind", "encoder_decoder_attention"),
        ):
            page.choose(selector, value)
            seen.append(page.evaluate(shown))
        complaints = page.complaints

    assert RECURRENT_DECODER_NOTE in data["notes"]
    assert kinds == 2
    # Enabled layers; their maps, of the mean and two heads; the one chosen,
    # at first the last of two.
    assert seen == [[2, 6, "1"], [3, 9, "1"], [3, 9, "2"], [2, 6, "1"]]
    assert complaints == []


def test_its_check_passes(converted_dir, capsys):
    check.main(["--export-dir", str(converted_dir)])

    said = capsys.readouterr().out
    assert "ok" in said
    assert "WRONG" not in said
