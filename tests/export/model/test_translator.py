import dataclasses
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from command_line.errors import UserError
from export.__main__ import main
from export.bundle.run_loading import load_run, with_dtype
from export.model.search import SearchSettings
from export.model.translator import Translator
from keras_transformer import Architecture, SubwordTokenizer, Transformer
from tests.helpers.example_sentences import NASTY, SENTENCES
from tests.helpers.other_systems.converted_runs import CustomOutputModel
from tests.helpers.other_systems.ctranslate2_models import make_model
from tests.helpers.signature_requests import ask, assert_same

SMALL = Architecture(
    num_layers=1, hidden_dim=8, intermediate_dim=8, num_heads=1, key_dim=8, value_dim=8
)


def run(translator, text):
    return translator.signatures["serving_default"](text=tf.constant(text))


def test_all_loaders_give_the_same_translations(run_dir, servable, translate):
    text = [s.encode() for s in SENTENCES[:4]] + NASTY
    direct = load_run(run_dir, SearchSettings(beam_size=3, max_extra_length=8))

    expected = translate(text)

    assert len(set(expected["translation"])) > 3
    assert_same(run(direct, text), expected, atol=1e-4)
    assert_same(servable.predict("serving_default", ask(text)), expected, atol=1e-4)


def test_texts_without_a_token_give_nothing(translate):
    outputs = translate(NASTY[:4])

    assert outputs["translation"].tolist() == [b""] * 4
    assert not outputs["score"].any()
    assert not outputs["truncated"].any()
    assert {value.shape for value in translate([]).values()} == {(0,)}


def test_learned_positions_limit_the_translation(run_dir):
    proto = (run_dir / "tokenizer.model").read_bytes()
    size = SubwordTokenizer(proto).vocabulary_size
    small = dataclasses.replace(SMALL, positions="learned")
    model = Transformer(size, small, sequence_length=9)
    model.build()
    translator = Translator(model, (proto, None), SearchSettings(2, 0.6, 50))

    outputs = run(translator, [SENTENCES[0]])

    assert outputs["truncated"].numpy().all()


def test_ids_beyond_the_tokenizer_are_never_chosen(run_dir):
    proto = (run_dir / "tokenizer.model").read_bytes()
    size = SubwordTokenizer(proto).vocabulary_size
    model = Transformer(size + 5, SMALL)
    model.build()
    table = np.array(model.embedding.embeddings)
    table[size:] *= 100  # Training would never learn these.
    model.embedding.embeddings.assign(table)
    translator = Translator(model, (proto, None), SearchSettings(2, 0.6, 5))

    outputs = run(translator, SENTENCES[:2])

    assert np.isfinite(outputs["score"]).all()


def test_another_precision_keeps_the_class():
    model = CustomOutputModel(30, make_model(num_layers=1).architecture, 9)
    model.build()

    found = with_dtype(model, "bfloat16")

    assert type(found) is CustomOutputModel
    assert found.embedding.embeddings.dtype == "bfloat16"
    np.testing.assert_array_equal(found.head.kernel, model.head.kernel)


def test_refuses_another_kind_of_model(run_dir, tmp_path):
    shutil.copytree(run_dir, tmp_path / "run")
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.save(tmp_path / "run" / "model.keras")

    with pytest.raises(UserError, match="a Transformer. Received: Sequential"):
        load_run(tmp_path / "run", SearchSettings())


def test_refuses_weights_that_are_not_finite(run_dir, tmp_path, capsys):
    shutil.copytree(run_dir, tmp_path / "run")
    path = tmp_path / "run" / "model.keras"
    model = keras.saving.load_model(path, compile=False)
    for weight in model.weights[:5]:
        weight.assign(np.full(weight.shape, np.nan))
    model.save(path)
    names = ", ".join(weight.path for weight in model.weights[:3])
    message = f"finite weights. Received NaN or infinity in: {names} and 2 more"

    with pytest.raises(SystemExit):
        main(["--run-dir", str(path.parent), "--export-dir", f"{tmp_path}/x"])

    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
