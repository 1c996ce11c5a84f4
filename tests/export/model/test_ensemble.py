"""Tests of exports of several models."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

import export.__main__ as export_command
from export import check
from export.bundle.file_layout import BUNDLE
from export.bundle.run_loading import load_run, read_run
from export.model.search import SearchSettings
from export.model.translator import Translator
from keras_transformer.tokenizer import read_protos
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.oracles.numpy_oracles import encode, target_log_probabilities
from tests.helpers.oracles.reference_searches import penalty
from tests.helpers.other_systems.ctranslate2_models import make_model

SETTINGS = SearchSettings(3, max_extra_length=8, no_repeat_ngram=2)
NAMES = ("serving_default", "score", "align")
TEXTS = tf.constant(SENTENCES[:4])


@pytest.fixture(scope="module")
def run_dirs(run_dir, tmp_path_factory):
    """The run, and one with its tokenizer: wider, deeper, and recurrent."""
    folder = tmp_path_factory.mktemp("run")
    shutil.copy(run_dir / "tokenizer.model", folder)
    model = make_model(num_layers=3, hidden_dim=24, decoder_mixer="ssru")
    model.embedding.embeddings.assign(2 * model.embedding.embeddings)
    model.save(folder / "model.keras")
    return [run_dir, folder]


@pytest.fixture(scope="module")
def translator(run_dirs):
    return load_run(run_dirs, SETTINGS, signatures=NAMES)


@pytest.fixture(scope="module")
def ensemble(translator):
    return translator.signatures


@pytest.fixture(scope="module")
def mean_scores(run_dirs):
    """Function to the logarithms of mean probabilities of the tokens of targets."""
    models = [read_run(run_dir)[0] for run_dir in run_dirs]

    def find(*ids):
        each = [target_log_probabilities(model, *ids) for model in models]
        expected = np.log(np.mean(np.exp(each), axis=0))
        assert not np.allclose(each[0], expected, atol=1e-2)
        return expected

    return find


def test_alignments_are_means(ensemble, run_dirs):
    pairs = TEXTS, TEXTS[::-1]

    found = ensemble["align"](*pairs)["attention"]

    each = []
    for run_dir in run_dirs:
        member = load_run(run_dir, SETTINGS, signatures=["align"]).signatures["align"]
        each.append(member(*pairs)["attention"].numpy())
    assert not np.allclose(*each, atol=1e-2)
    np.testing.assert_allclose(found, np.mean(each, axis=0), atol=1e-4)


def test_scores_and_the_search_are_of_the_mean_probabilities(
    translator, ensemble, tokenizer, mean_scores
):
    texts = [text.encode() for text in SENTENCES[:4]]
    ids = encode(tokenizer, texts)

    forced = ensemble["score"](TEXTS, TEXTS[::-1])["token_log_probabilities"]
    found = translator._search(ids, np.count_nonzero(ids, axis=1))

    expected = mean_scores(ids, encode(tokenizer, texts[::-1]))
    np.testing.assert_allclose(forced, expected, atol=1e-4)
    targets = found.ids[:, 0].numpy()
    expected = mean_scores(ids, targets).sum(axis=1)
    expected /= penalty((targets > 0).sum(axis=1), SETTINGS.length_penalty)
    np.testing.assert_allclose(found.scores[:, 0], expected, atol=1e-3)


@pytest.mark.slow
def test_the_command_writes_one_savedmodel(run_dirs, ensemble, tmp_path):
    folders = [f"--run-dir={folder}" for folder in run_dirs]
    options = ["--beam-size=3", "--max-extra-length=8", "--no-repeat-ngram=2"]

    export_command.main([f"--export-dir={tmp_path}", *folders, *options])

    check.main([f"--export-dir={tmp_path}"])
    bundle = json.loads((tmp_path / "1" / BUNDLE).read_text())
    assert len(bundle["runs"]) == 2
    assert bundle["validation"] is None
    saved = tf.saved_model.load(str(tmp_path / "1"))
    found = saved.signatures["serving_default"](TEXTS)
    expected = ensemble["serving_default"](TEXTS)
    assert found["translation"].numpy().tolist() == (
        expected["translation"].numpy().tolist()
    )


def test_refuses_what_has_no_mean(run_dirs, run_dir, tmp_path, refused):
    other = tmp_path / "other"
    shutil.copytree(run_dir, other)
    proto = (other / "tokenizer.model").read_bytes()
    two = [f"--run-dir={folder}" for folder in run_dirs]
    export_dir = f"--export-dir={tmp_path / 'export'}"

    line = refused(export_command, *two, export_dir, "--format=litert")
    assert "one folder with --format litert. Received: 2 folders" in line
    line = refused(export_command, *two, export_dir, "--signatures=all")
    assert "without the signature explain" in line
    (other / "target_tokenizer.model").write_bytes(proto)
    line = refused(export_command, two[0], f"--run-dir={other}", export_dir)
    assert f"Received: {run_dir} and {other}, whose tokenizers differ" in line
    with pytest.raises(ValueError, match="of one size. Received: 330, 338"):
        Translator(
            [make_model(), make_model(vocabulary_size=338)],
            read_protos(run_dir),
            SETTINGS,
        )
