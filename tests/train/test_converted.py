"""Tests of `python -m train` with converted models, and with their kind."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import train.__main__ as train_command
from command_line.errors import UserError
from keras_transformer.tokenizer import read_protos
from tests.helpers.other_systems.converted_runs import DECODING, write_converted_run
from tests.helpers.small_runs import (
    TINY_OPTIONS,
    assert_same_run,
    load_weights,
    refused,
)
from train.data.corpus import demo_pairs
from train.run.fine_tuning import extend_vocabulary, load_finished, with_rows
from train.run.run_folder import read_history

FEW = [
    *["--batch-tokens=64", "--steps=4", "--steps-per-epoch=2", "--average=2"],
    *["--validate-bleu=0", "--learning-rate-scale=0.3"],
]


def write_converted(folder, shares):
    """Writes the folder of a model that knows the words of `corpus`."""
    pairs = demo_pairs("validation")
    sizes = {"num_layers": 1, "key_dim": 3, "value_dim": 5, "dropout": 0.1}
    texts = pairs.sources[:70], pairs.targets[:70]
    write_converted_run(folder, texts, shares, **sizes)
    return folder


@pytest.fixture(scope="module", params=[True, False], ids=["one", "two"])
def converted(request, tmp_path_factory):
    """Folders of a model with one matrix, and of one with two."""
    folder = tmp_path_factory.mktemp("converted") / "run"
    return write_converted(folder, request.param)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted") / "run"
    return write_converted(folder, shares=False)


def fine_tune(run_dir, start, corpus, *options):
    named = ["--run-dir", str(run_dir), "--init-from", str(start)]
    train_command.main([*named, *corpus, *FEW, *map(str, options)])
    return load_weights(run_dir / "model.keras")


@pytest.fixture(scope="module")
def whole(two, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fine_tuned") / "run"
    fine_tune(folder, two, corpus)
    return folder


@pytest.mark.slow
def test_fine_tunes_a_converted_run_and_goes_on(two, whole, corpus, tmp_path, capsys):
    fine_tune(tmp_path, two, corpus, "--steps=2")
    fine_tune(tmp_path, two, corpus)

    assert "continuing after update 2" in capsys.readouterr().out
    assert_same_run(tmp_path, whole)
    assert read_protos(whole) == read_protos(two)
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
def test_all_that_follows_a_fine_tuned_run_works(two, corpus, tmp_path):
    run_dir = tmp_path / "run"
    fine_tune(run_dir, two, corpus, "--validate-bleu=2", "--steps=2")

    assert "bleu" in json.loads((run_dir / "model.json").read_text())["validation"]
    train_command.main(
        [
            *("--run-dir", str(tmp_path / "repeated")),
            *("--config", str(run_dir / "arguments.json")),
        ]
    )
    assert_same_run(run_dir, tmp_path / "repeated")


@pytest.mark.slow
def test_each_side_has_the_ids_of_its_own_tokenizer(two, whole, corpus):
    (folder,) = [
        path.parent
        for path in (whole / "encoded").glob("*/encoded.json")
        if json.loads(path.read_text())["figures"]["pairs"] == 10
    ]
    for name, proto in zip(("source", "target"), read_protos(two), strict=True):
        path = pathlib.Path(corpus[corpus.index(f"--validation-{name}") + 1])
        lines = path.read_text(encoding="utf-8").splitlines()
        library = sentencepiece.SentencePieceProcessor(model_proto=proto)
        expected = library.encode(lines, add_eos=True)
        found = np.fromfile(folder / f"{name}.ids", "<u2")
        np.testing.assert_array_equal(found, np.concatenate(expected))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [["--decoder-layers=2", "--activation=gelu"], ["--decoder-mixer=ssru"]]
)
def test_trains_other_architectures_from_scratch(options, corpus, tmp_path):
    command = ["--run-dir", str(tmp_path), *corpus, *TINY_OPTIONS, *options]
    train_command.main(command)

    model = load_finished(tmp_path).transformer
    given = [o.removeprefix("--").replace("-", "_").split("=") for o in options]
    for name, value in given:
        assert str(getattr(model.architecture, name)) == value
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["model"]["parameters"] == model.count_params()


def test_a_converted_folder_is_no_place_to_train(two, corpus, capsys):
    command = ["--run-dir", two, "--init-from", two, *corpus, *FEW]

    line = refused(capsys, command)

    assert "--run-dir must be another folder" in line


NEW = ["▁Zürich", "ｘyz", "gato▁negro"]


@pytest.fixture
def pieces(tmp_path):
    path = tmp_path / "pieces.txt"
    path.write_text("\n".join(NEW) + "\n", encoding="utf-8")
    return path


def test_the_model_to_start_from_needs_no_memory_of_a_gpu(two, pieces):
    with tf.device("CPU:1"):  # The default device, as a GPU is one.
        start = load_finished(two)
        extended = extend_vocabulary(start, pieces)

    weights = start.transformer.weights + extended.transformer.weights
    devices = {weight.value.device[-5:] for weight in weights}
    assert devices == {"CPU:0"}


@pytest.mark.slow
def test_adds_new_pieces_behind_the_others(converted, pieces, corpus, tmp_path):
    run_dir = tmp_path / "run"
    options = ["--extend-vocabulary", pieces, "--steps=1"]
    weights = fine_tune(
        run_dir, converted, corpus, *options, "--learning-rate-scale=1e-60"
    )

    before = load_weights(converted / "model.keras")
    changed = 0
    for old, new in zip(before, weights, strict=True):
        np.testing.assert_array_equal(new[: len(old)], old)
        if new.shape != old.shape:
            changed += 1
            mean = old.mean(axis=0, dtype=np.float64).astype("float32")
            assert new.shape == (len(old) + 3, *old.shape[1:])
            np.testing.assert_array_equal(new[-3:], [mean] * 3)
    model = load_finished(converted).transformer
    tables = {model.embedding_of_sources, model.embedding}
    tables.add(model.embedding_of_logits)
    assert changed == len(tables) + 1  # The bias, too.
    for old, new in zip(read_protos(converted), read_protos(run_dir), strict=True):
        old, new = (
            sentencepiece.SentencePieceProcessor(model_proto=proto)
            for proto in (old, new)
        )
        size = len(old)
        assert len(new) == size + 3
        assert [new.id_to_piece(i) for i in range(size)] == [
            old.id_to_piece(i) for i in range(size)
        ]
        text = "I see Zürich, a ｘyz and a gato negro."
        assert {size, size + 1, size + 2} < set(new.encode(text))
        plain = "I have two black cats."
        assert new.encode(plain) == old.encode(plain)


def test_refuses_new_pieces_where_the_model_has_ids_of_none(two, pieces):
    start = load_finished(two)
    more = with_rows(start.transformer, 3)
    start = dataclasses.replace(start, transformer=more)

    sizes = f"{more.source_vocabulary_size - 3} subwords and "
    sizes += f"{more.source_vocabulary_size} ids"
    with pytest.raises(UserError, match=sizes):
        extend_vocabulary(start, pieces)


@pytest.mark.slow
def test_a_run_keeps_its_new_pieces(two, pieces, corpus, tmp_path, capsys):
    run_dir = tmp_path / "run"
    options = ["--extend-vocabulary", pieces]
    fine_tune(run_dir, two, corpus, *options, "--steps=2")
    fine_tune(run_dir, two, corpus, *options)
    assert "continuing after update 2" in capsys.readouterr().out
    # And another run may start from it.
    fine_tune(tmp_path / "next", run_dir, corpus, "--steps=1")

    command = ["--run-dir", run_dir, "--init-from", two, *corpus, *FEW]
    line = refused(capsys, command)
    assert "pieces: " in line
    assert "None here" in line
    pieces.write_text("▁Zürich\nxyz\nother\n", encoding="utf-8")
    line = refused(capsys, [*command, *options])
    assert "pieces: " in line
    assert "weights" not in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ab\n<s>\n", "must be no special subword. Received: '<s>'"),
        ("ab\n▁\n", "must be no subword that is there. Received: '▁'"),
    ],
)
def test_refuses_other_pieces(text, message, two, corpus, tmp_path, capsys):
    path = tmp_path / "pieces.txt"
    path.write_text(text, encoding="utf-8")
    command = ["--run-dir", tmp_path / "run", "--init-from", two, *corpus]
    command += [*FEW, "--extend-vocabulary", path]

    line = refused(capsys, command)

    assert message in line
    assert not (tmp_path / "run" / "arguments.json").exists()
