"""Tests of `python -m train` with converted models, and with their kind."""

import json
import pathlib

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import train.__main__ as train_command
from keras_transformer.tokenizer import read_protos
from tests.helpers.other_systems.converted_runs import DECODING, write_converted_run
from tests.helpers.small_runs import assert_same_run, load_weights, refused
from train.data.corpus import demo_pairs
from train.run.fine_tuning import load_finished
from train.run.run_folder import read_history

FEW = [
    *["--batch-tokens=64", "--steps=4", "--steps-per-epoch=2", "--average=2"],
    *["--validate-bleu=2", "--learning-rate-scale=0.3"],
]


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """The folder of a model with two matrices that knows the words of `corpus`."""
    folder = tmp_path_factory.mktemp("converted") / "run"
    pairs = demo_pairs("validation")
    sizes = {"num_layers": 1, "key_dim": 3, "value_dim": 5, "dropout": 0.1}
    texts = pairs.sources[:70], pairs.targets[:70]
    write_converted_run(folder, texts, shares=False, **sizes)
    return folder


def fine_tune(run_dir, start, corpus, *options):
    named = ["--run-dir", str(run_dir), "--init-from", str(start)]
    train_command.main([*named, *corpus, *FEW, *map(str, options)])
    return load_weights(run_dir / "model.keras")


@pytest.fixture(scope="module")
def whole(converted, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fine_tuned") / "run"
    fine_tune(folder, converted, corpus)
    return folder


@pytest.mark.slow
def test_fine_tunes_a_converted_run_and_goes_on(
    converted, whole, corpus, tmp_path, capsys
):
    fine_tune(tmp_path, converted, corpus, "--steps=2")
    config = str(whole / "arguments.json")
    train_command.main(["--run-dir", str(tmp_path), "--config", config])

    assert "continuing after update 2" in capsys.readouterr().out
    assert_same_run(tmp_path, whole)
    assert read_protos(whole) == read_protos(converted)
    first, *_, last = [float(row["val_loss"]) for row in read_history(whole)]
    assert last < first
    description = json.loads((whole / "arguments.json").read_text())
    assert description["decoding"] == DECODING
    assert description["init"].keys() == {*("weights", "tokenizer", "target_tokenizer")}
    model = load_finished(whole).transformer
    size = description["arguments"].get("source_vocabulary_size")
    assert size == model.source_vocabulary_size
    report = json.loads((whole / "report.json").read_text())
    assert report["model"]["parameters"] == model.count_params()


@pytest.mark.slow
def test_each_side_has_the_ids_of_its_own_tokenizer(converted, whole, corpus):
    (folder,) = [
        path.parent
        for path in (whole / "encoded").glob("*/encoded.json")
        if json.loads(path.read_text())["figures"]["pairs"] == 10
    ]
    for name, proto in zip(("source", "target"), read_protos(converted), strict=True):
        path = pathlib.Path(corpus[corpus.index(f"--validation-{name}") + 1])
        lines = path.read_text(encoding="utf-8").splitlines()
        library = sentencepiece.SentencePieceProcessor(model_proto=proto)
        expected = library.encode(lines, add_eos=True)
        found = np.fromfile(folder / f"{name}.ids", "<u2")
        np.testing.assert_array_equal(found, np.concatenate(expected))


def test_a_converted_folder_is_no_place_to_train(converted, corpus, capsys):
    command = ["--run-dir", converted, "--init-from", converted, *corpus, *FEW]

    line = refused(capsys, command)

    assert "--run-dir must be another folder" in line


def test_the_model_to_start_from_needs_no_memory_of_a_gpu(converted):
    with tf.device("CPU:1"):  # The default device, as a GPU is one.
        weights = load_finished(converted).transformer.weights

    assert {weight.value.device[-5:] for weight in weights} == {"CPU:0"}
