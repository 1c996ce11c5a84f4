"""Tests of `--alignments`: the loss, and the head that learns the links."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from export.__main__ import fill_in_defaults, parse_options
from export.bundle.model_loading import load_run
from export.model.search import SearchSettings
from keras_transformer.masks import padding_mask
from tests.helpers.small_runs import (
    SETTINGS,
    TINY_OPTIONS,
    make_training_pairs,
    small_task,
)
from train import __main__ as train_command
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset, make_replica_batch
from train.data.encoded_pairs import Ids
from train.loop.training_model import alignment_losses

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
    task, plan = small_task(GUIDED), BatchPlan(pairs, 120, seed=0)

    def gradients(num_replicas, limit):
        parts = []
        for replica in range(num_replicas):
            batch = make_replica_batch(plan, 2, replica, num_replicas, limit)
            parts.append(task.gradients(dict(zip(NAMES, batch, strict=True))))
        return [sum(part).numpy() for part in zip(*parts, strict=True)]

    (batch,) = make_dataset(plan, tf.distribute.get_strategy(), 2, 3)
    links = plan.batch(2)[3]
    assert links.any()
    np.testing.assert_array_equal(batch["links"][0], links)
    for a, b in zip(gradients(1, None), gradients(2, 30), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


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
    options = [*TINY_OPTIONS, "--num-heads=2", f"--alignments={alignments}"]
    train_command.main(["--run-dir", str(tmp_path), *corpus, *options])
    description = json.loads((tmp_path / "arguments.json").read_text())
    assert description["decoding"] == {"align_head": 0}

    def load(*options):
        paths = [f"--run-dir={tmp_path}", "--export-dir=x"]
        given = fill_in_defaults(parse_options([*paths, *options]))
        settings = SearchSettings(
            align_layer=given.align_layer, align_head=given.align_head
        )
        return load_run(tmp_path, settings, signatures=("align", "explain")).signatures

    texts = [tf.constant([text]) for text in ("The cat sleeps.", "El gato duerme.")]
    models = load(), load("--align-layer=0")
    heads = models[0]["explain"](*texts)["encoder_decoder_attention"].numpy()
    for model, expected in zip(
        models, (heads[0, 0, 0], heads[0, 0].mean(axis=0)), strict=True
    ):
        found = model["align"](*texts)["attention"][0]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(heads[0, 0, 0] - heads[0, 0, 1]).max() > 1e-4
