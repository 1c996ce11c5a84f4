"""Tests of `--alignments`: the loss, and the head that learns the links."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from export.__main__ import main as export
from keras_transformer.masks import padding_mask
from tests.helpers.small_runs import (
    SETTINGS,
    TINY_OPTIONS,
    make_training_pairs,
    small_task,
    weights_after_twenty_updates,
)
from train import __main__ as train_command
from train.data.batch_plan import BatchPlan
from train.data.encoded_pairs import Ids
from train.fit import make_strategy
from train.loop.training_model import alignment_losses
from translate.runtime.saved_model import SavedModelRuntime

GUIDED = dataclasses.replace(SETTINGS, alignment_weight=2.0)
NAMES = ("source_ids", "target_ids", "labels", "links", "num_tokens")


@pytest.fixture(scope="module")
def pairs():
    """Pairs with up to three links each."""
    pairs, random = make_training_pairs(), np.random.default_rng(5)
    numbers = [
        np.unique(
            [
                random.integers(target) * 2**16 + random.integers(source) + 1
                for _ in range(random.integers(4))
            ]
        ).astype(np.int64)
        for source, target in zip(
            pairs.sources.lengths, pairs.targets.lengths, strict=True
        )
    ]
    offsets = np.cumsum([0, *map(len, numbers)])
    return dataclasses.replace(pairs, links=Ids(np.concatenate(numbers), offsets))


def test_the_loss_is_that_of_the_formula(pairs):
    task = small_task(GUIDED, num_layers=3)
    batch = BatchPlan(pairs, 2_000, 0).batch(0)
    batch = dict(zip(NAMES, batch, strict=True))
    plain = {name: x for name, x in batch.items() if name != "links"}

    with tf.GradientTape() as tape:
        own = task.loss_sum(batch, training=True)
        own -= task.loss_sum(plain, training=True)

    model = task.transformer
    memory = model.encode(batch["source_ids"])
    _, scores = model.decode_states(
        batch["target_ids"],
        memory,
        padding_mask(batch["source_ids"]),
        return_attention_scores=True,
    )
    attention = np.array(scores[1][1])[:, 0]  # The last layer but one.
    found = alignment_losses(attention, batch["links"]).numpy()
    real = np.nonzero(batch["labels"])
    expected = []
    for b, t in zip(*real, strict=True):
        linked = np.flatnonzero(batch["links"][b, t])
        logs = np.log(attention[b, t, linked] + 1e-6)
        expected.append(-logs.mean() if len(linked) else 0.0)
    np.testing.assert_allclose(found[real], expected, atol=1e-5)
    np.testing.assert_allclose(own, 2 * np.sum(expected), rtol=1e-4)
    assert 0 < np.count_nonzero(expected) < len(expected)
    # It changes what that layer asks for.
    layer = model.decoder.layers[1].memory_attention
    kernel = layer.query_projection.trainable_variables[0]
    assert np.abs(tf.convert_to_tensor(tape.gradient(own, kernel))).max() > 1e-3


def test_replicas_with_micro_batches_are_one_device(pairs):
    both = make_strategy(["CPU:0", "CPU:1"])
    expected, _ = weights_after_twenty_updates(pairs, False, settings=GUIDED)
    found, _ = weights_after_twenty_updates(pairs, False, both, 30, settings=GUIDED)
    plain, _ = weights_after_twenty_updates(
        dataclasses.replace(pairs, links=None), False, settings=GUIDED
    )

    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)
    assert any(np.abs(a - b).max() > 1e-3 for a, b in zip(expected, plain, strict=True))


@pytest.fixture(scope="module")
def alignments(corpus, tmp_path_factory):
    """A file that links the first words of each pair, if there are any."""
    path = tmp_path_factory.mktemp("links") / "links"
    sides = [pathlib.Path(corpus[i]).read_text("utf-8").splitlines() for i in (1, 3)]
    lines = [
        "0-0" if all(map(str.split, pair)) else "" for pair in zip(*sides, strict=True)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_head_that_was_guided_aligns(corpus, alignments, tmp_path):
    run_dir, export_dir = tmp_path / "run", tmp_path / "export"
    options = [*TINY_OPTIONS, "--num-heads=2", f"--alignments={alignments}"]
    train_command.main(["--run-dir", str(run_dir), *corpus, *options])
    description = json.loads((run_dir / "arguments.json").read_text())
    assert description["decoding"] == {"align_head": 0}
    paths = ["--run-dir", str(run_dir), "--export-dir", str(export_dir)]

    export([*paths, "--signatures", "align", "explain"])
    export([*paths, "--signatures", "align", "--align-layer=0"])

    texts = {
        "source": np.array([b"The cat sleeps."], object),
        "target": np.array([b"El gato duerme."], object),
    }
    first, second = (SavedModelRuntime(export_dir / version) for version in "12")
    heads = first.ask("explain", texts)["encoder_decoder_attention"]
    for model, expected in (
        (first, heads[0, 0, 0]),
        (second, heads[0, 0].mean(axis=0)),
    ):
        found = model.ask("align", texts)["attention"][0]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(heads[0, 0, 0] - heads[0, 0, 1]).max() > 1e-4
