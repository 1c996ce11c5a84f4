"""Tests of `train.monitoring.cost_estimates`."""

import dataclasses

import numpy as np
import pytest

from keras_transformer import PRESETS, Transformer
from paper.table2 import update_flops
from train.data.batch_plan import BatchPlan
from train.data.encoded_pairs import EncodedPairs, Ids
from train.monitoring.cost_estimates import (
    count_flops,
    estimate_memory,
    find_largest_batch,
)

ODD = dataclasses.replace(
    PRESETS["tiny"].architecture,
    num_layers=2,
    hidden_dim=10,
    intermediate_dim=14,
    num_heads=3,
    key_dim=5,
    value_dim=7,
)


def test_counts_the_products_of_a_model_whose_sentences_are_short():
    """Against the matrix products in the graph of an update."""
    changes = {"hidden_dim": 96, "intermediate_dim": 300, "key_dim": 32}
    preset = PRESETS["tiny"].replace(**changes, value_dim=32, num_heads=3)
    rows, length = 8, 6
    ids = Ids(np.ones(rows * length, np.int32), np.arange(0, 49, length))
    plan = BatchPlan(EncodedPairs(ids, ids), batch_tokens=rows * length, seed=0)
    assert plan.shapes == ((rows, length, length),)

    count = count_flops(make_model(preset.architecture, 50), plan)

    expected = update_flops(preset, 50, rows, length)
    assert count == pytest.approx(expected, rel=0.03)


def make_model(architecture, vocabulary_size, length=11):
    model = Transformer(vocabulary_size, architecture, length)
    model.build()
    return model


def test_memory_counts_weights_four_times():
    model = make_model(ODD, 50)
    memory = estimate_memory(model, (8, 5, 10))
    half = estimate_memory(model, (4, 5, 10), "bfloat16")

    state = memory["weights"] + memory["gradients"] + memory["optimizer"]
    assert state == 16 * model.count_params()
    assert memory["logits"] == 3 * 4 * 8 * 10 * 50
    assert half["logits"] == memory["logits"] // 2
    assert half["activations"] == memory["activations"] // 4


def plan_of(lengths, batch_tokens=320):
    """Returns the plan of pairs with these lengths of both sides."""
    sides = [
        Ids(np.ones(sum(side), np.int32), np.cumsum([0, *side]))
        for side in zip(*lengths, strict=True)
    ]
    return BatchPlan(EncodedPairs(*sides), batch_tokens, seed=0)


@pytest.mark.parametrize(
    ("vocabulary_size", "lengths", "largest"),
    [
        # The long sources have short targets: others have more logits.
        (5_000, [(10, 10)] * 80 + [(40, 4)] * 16, (32, 10, 10)),
        (11, [(10, 10)] * 80 + [(60, 4)] * 16, (8, 60, 10)),
        # As many positions, but longer rows of attention weights.
        (5_000, [(10, 10)] * 80 + [(40, 40)] * 16, (8, 40, 40)),
    ],
)
def test_the_largest_batch_needs_most_memory(vocabulary_size, lengths, largest):
    model = make_model(ODD, vocabulary_size, 70)
    plan = plan_of(lengths)

    for epoch in range(3):
        first = epoch * plan.batches_per_pass
        j = find_largest_batch(model, plan, first + 1, 1, None, "float32")

        assert first <= j < first + plan.batches_per_pass
        assert plan.shape(j) == largest
    parts = find_largest_batch(model, plan, 0, 2, 50, "bfloat16")
    assert plan.shape(parts) in plan.shapes
