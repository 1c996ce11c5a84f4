"""Tests of `export.model.translator` and `export.bundle.saved_model`."""

import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from command_line.errors import UserError
from export.bundle.saved_model import load_run
from export.bundle.saved_model import load_translate
from export.model.search import SearchSettings
from export.model.translator import Translator
from keras_transformer import Architecture
from keras_transformer import SubwordTokenizer
from keras_transformer import Transformer
from tests.helpers.sentences import NASTY
from tests.helpers.sentences import SENTENCES

SMALL = Architecture(
    num_layers=1,
    hidden_dim=8,
    intermediate_dim=8,
    num_heads=1,
    key_dim=8,
    value_dim=8,
)


def outputs_of(translate, text):
    return {name: value.numpy() for name, value in translate(text).items()}


def assert_same(outputs, expected, tolerance=1e-4):
    for name in ("translation", "truncated"):
        np.testing.assert_array_equal(outputs[name], expected[name])
    np.testing.assert_allclose(
        outputs["score"], expected["score"], atol=tolerance
    )


def in_session(folder, text):
    """Runs the default signature the way TF Serving loads it."""
    with (
        tf.Graph().as_default(),
        tf.compat.v1.Session() as session,
    ):
        meta = tf.compat.v1.saved_model.loader.load(
            session, ["serve"], str(folder)
        )
        signature = meta.signature_def["serving_default"]
        names = {key: info.name for key, info in signature.outputs.items()}
        return session.run(names, {signature.inputs["text"].name: text})


def test_translates_as_the_model_decoded_greedily(run_dir, tmp_path):
    settings = SearchSettings(beam_size=1, max_extra_length=2)
    translator = load_run(run_dir, settings)
    model = keras.saving.load_model(run_dir / "model.keras", compile=False)
    tokenizer = SubwordTokenizer((run_dir / "tokenizer.model").read_bytes())
    text = [SENTENCES[1], SENTENCES[3]]

    expected = []
    for sentence in text:
        source = tokenizer.tokenize([sentence]).to_tensor()
        target = [3]
        # The whole target goes through the decoder anew at each step.
        while target[-1] != 1 and len(target) <= source.shape[1] + 2:
            logits = model(
                {"source_ids": source, "target_ids": np.array([target])}
            )
            allowed = np.array(logits[0, -1])
            allowed[[0, 3]] = -np.inf
            target.append(int(np.argmax(allowed)))
        expected.append(target[1:])

    outputs = translator.translate(tf.constant(text))
    cut = [target[-1] != 1 for target in expected]
    for target, is_cut in zip(expected, cut, strict=True):
        target[-1] = 1 if is_cut else target[-1]
    padded = tf.ragged.constant(expected).to_tensor()

    np.testing.assert_array_equal(
        outputs["translation"], tokenizer.detokenize(padded)
    )
    np.testing.assert_array_equal(outputs["truncated"], cut)
    assert any(len(target) > 3 for target in expected)


def test_all_loaders_give_the_same_translations(run_dir, export_dir, translate):
    text = [s.encode() for s in SENTENCES[:4]] + NASTY
    direct = load_run(run_dir, SearchSettings(beam_size=3, max_extra_length=8))

    expected = outputs_of(translate, text)

    assert len(set(expected["translation"])) > 3
    assert_same(outputs_of(direct.translate, tf.constant(text)), expected)
    assert_same(in_session(export_dir / "1", text), expected)


@pytest.mark.slow
def test_a_naive_export_fails_in_a_session(run_dir, tmp_path):
    """Shows that the comparison above can fail: Keras objects tracked."""
    translator = load_run(run_dir, SearchSettings(beam_size=1))
    translator.model = translator._model.transformer
    del translator._model._weights
    tf.saved_model.save(
        translator,
        str(tmp_path / "naive"),
        signatures={"serving_default": translator.translate},
    )

    with pytest.raises(tf.errors.FailedPreconditionError):
        in_session(tmp_path / "naive", [b"a cat"])


@pytest.mark.slow
def test_serves_where_nothing_but_tensorflow_is_installed(
    export_dir, translate, tmp_path
):
    shutil.copytree(export_dir / "1", tmp_path / "moved")
    text = [*SENTENCES[:3], ""]
    code = """
import json, sys
import tensorflow as tf
import tensorflow_text
loaded = tf.saved_model.load(sys.argv[1])
text = tf.constant(json.loads(sys.argv[2]))
outputs = loaded.signatures["serving_default"](text=text)
outputs = {name: value.numpy().tolist() for name, value in outputs.items()}
outputs["translation"] = [t.decode() for t in outputs["translation"]]
packages = {name.split(".")[0] for name in sys.modules}
assert not packages & {"keras_transformer", "export", "train"}, packages
print(json.dumps(outputs))
"""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            code,
            tmp_path / "moved",
            json.dumps(text),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    outputs = json.loads(done.stdout.splitlines()[-1])
    outputs["translation"] = [t.encode() for t in outputs["translation"]]
    assert_same(outputs, outputs_of(translate, text))


def test_texts_without_a_token_give_nothing(translate):
    outputs = outputs_of(translate, NASTY[:4])

    np.testing.assert_array_equal(outputs["translation"], [b""] * 4)
    np.testing.assert_array_equal(outputs["score"], [0.0] * 4)
    np.testing.assert_array_equal(outputs["truncated"], [False] * 4)


def test_nasty_texts_give_text(translate):
    outputs = outputs_of(translate, NASTY)

    for translation in outputs["translation"]:
        translation.decode("utf-8")
    assert np.isfinite(outputs["score"]).all()
    assert outputs["truncated"][-1]


def test_a_batch_of_none_gives_none(translate):
    outputs = outputs_of(translate, tf.zeros([0], tf.string))

    assert {value.shape for value in outputs.values()} == {(0,)}


def test_batch_mates_change_nothing(translate):
    text = [SENTENCES[0].encode(), *NASTY, SENTENCES[1].encode()]
    together = outputs_of(translate, text)
    alone = [outputs_of(translate, [t]) for t in text]

    expected = {
        name: np.concatenate([outputs[name] for outputs in alone])
        for name in together
    }
    assert_same(together, expected, tolerance=1e-5)


def test_a_source_beyond_the_limit_is_cut_and_told(run_dir):
    model = keras.saving.load_model(run_dir / "model.keras", compile=False)
    proto = (run_dir / "tokenizer.model").read_bytes()
    translator = load_run(run_dir, SearchSettings(2, 0.6, 3))
    tokenizer = SubwordTokenizer(proto)
    long = " ".join(SENTENCES * 9)
    kept = tokenizer.tokenize([long])[:, : model.sequence_length - 1]

    source_ids, lengths, cut = translator._model.tokenize(
        tf.constant([long, "a"])
    )

    assert cut.numpy().tolist() == [True, False]
    assert lengths[0] == model.sequence_length
    np.testing.assert_array_equal(source_ids[0, :-1], kept[0])
    assert source_ids[0, -1] == 1


def test_learned_positions_limit_the_translation(run_dir):
    proto = (run_dir / "tokenizer.model").read_bytes()
    size = SubwordTokenizer(proto).vocabulary_size
    small = dataclasses.replace(SMALL, positions="learned")
    model = Transformer(size, small, sequence_length=9)
    model.build()
    translator = Translator(model, proto, SearchSettings(2, 0.6, 50))

    outputs = translator.translate(tf.constant([SENTENCES[0]]))

    assert outputs["truncated"].numpy().all()


def test_refuses_a_tokenizer_with_more_pieces_than_the_model(run_dir):
    proto = (run_dir / "tokenizer.model").read_bytes()
    model = Transformer(100, SMALL)

    with pytest.raises(ValueError, match="more pieces.*vocabulary_size=100"):
        Translator(model, proto, SearchSettings())


def test_ids_beyond_the_tokenizer_are_never_chosen(run_dir):
    proto = (run_dir / "tokenizer.model").read_bytes()
    size = SubwordTokenizer(proto).vocabulary_size
    model = Transformer(size + 5, SMALL)
    model.build()
    table = np.array(model.embedding.embeddings)
    table[size:] *= 100  # What training would never learn.
    model.embedding.embeddings.assign(table)
    translator = Translator(model, proto, SearchSettings(2, 0.6, 5))

    outputs = translator.translate(tf.constant(SENTENCES[:2]))

    assert np.isfinite(outputs["score"]).all()


def test_bfloat16_halves_the_weights_and_changes_scores_little(run_dir):
    settings = SearchSettings(beam_size=3, max_extra_length=8)
    text = [tf.constant(SENTENCES), tf.constant(SENTENCES[::-1])]
    plain, half = (
        load_run(run_dir, settings, precision)
        for precision in ("float32", "bfloat16")
    )
    sizes = [
        sum(v.shape.num_elements() * v.dtype.size for v in model._weights)
        for model in (plain._model, half._model)
    ]

    assert {v.dtype for v in half._model._weights} == {tf.bfloat16}
    assert sizes[1] == sizes[0] / 2
    scores = half.score(*text)["log_probability"]
    np.testing.assert_allclose(
        scores, plain.score(*text)["log_probability"], rtol=0.03
    )
    outputs = outputs_of(half.translate, text[0])
    assert outputs["score"].dtype == np.float32
    assert np.isfinite(outputs["score"]).all()


def test_refuses_folders_without_a_run_or_an_export(tmp_path):
    with pytest.raises(UserError, match=r"has no model\.keras"):
        load_run(tmp_path, SearchSettings())
    with pytest.raises(UserError, match="`python -m export` wrote"):
        load_translate(tmp_path / "nowhere")
    assert not list(pathlib.Path(tmp_path).iterdir())
