"""Tests of `train.monitoring.cost_estimates`."""

import dataclasses

import numpy as np
import pytest

from keras_transformer import PRESETS, Transformer
from train.data.batch_plan import BatchPlan
from train.data.encoded_pairs import EncodedPairs, Ids
from train.monitoring.cost_estimates import (
    count_flops,
    count_parameters,
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


def make_plan():
    """Returns 20 sources of 3 and 6 of 5 tokens, in batches of 8 rows.

    Targets are twice as long.
    """
    offsets = np.cumsum([0] + [3] * 20 + [5] * 6)
    sides = [
        Ids(np.ones(offsets[-1] * times, np.int32), offsets * times) for times in (1, 2)
    ]
    return BatchPlan(EncodedPairs(*sides), batch_tokens=8, seed=0)


@pytest.mark.parametrize(
    ("changes", "source_size"),
    [
        ({"norm": "post"}, None),
        ({"norm": "pre", "positions": "learned"}, 31),
        ({"decoder_layers": 3, "use_bias": True}, None),
        ({"decoder_layers": 1, "decoder_mixer": "ssru"}, 31),
        ({"decoder_mixer": "ssru", "use_bias": True}, None),
        ({"logits_bias": True, "positions": "learned"}, 31),
        ({"logits_bias": True, "tied_output": False}, None),
    ],
)
def test_counts_the_parameters_of_the_model(changes, source_size):
    architecture = dataclasses.replace(ODD, **changes)
    model = Transformer(50, architecture, 11, source_size)
    model.build()

    count = count_parameters(architecture, 50, 11, source_size)
    assert count == model.count_params()
    memory = estimate_memory(
        architecture, 50, 11, [(8, 5, 10)], source_vocabulary_size=source_size
    )
    assert memory["weights"] == 4 * count


def test_counts_the_flops_of_other_decoders():
    """Against the base of the test above: one change at a time."""
    plan = make_plan()
    base = count_flops(ODD, 50, plan)

    def more(**changes):
        flops = count_flops(dataclasses.replace(ODD, **changes), 50, plan)
        return (flops - base) * plan.batches_per_pass / 6

    decoder = recurrence = 0  # Multiplications: a decoder layer; and SSRUs.
    attention = 10 * (3 * 5 + 3 * 7)
    for batches, (rows, source, target) in zip(
        plan.num_batches, plan.shapes, strict=True
    ):
        looks_back = target * 2 * attention + 3 * target**2 * (5 + 7)
        layer = looks_back + target * (attention + 10 * 14 * 2)
        layer += source * attention + 3 * target * source * (5 + 7)
        decoder += batches * rows * layer
        recurrence += batches * rows * (target * 2 * 10 * 10 - looks_back)
    assert more(decoder_layers=3) == pytest.approx(decoder)
    assert more(decoder_layers=1) == pytest.approx(-decoder)
    assert more(decoder_mixer="ssru") == pytest.approx(2 * recurrence)
    assert more(logits_bias=True) == pytest.approx(plan.target_tokens * 50)
    assert more(use_bias=True) == 0


def test_memory_counts_weights_four_times_and_the_largest_batch():
    plan = make_plan()
    memory = estimate_memory(ODD, 50, 11, plan.shapes)
    shared = [(rows // 2, *lengths) for rows, *lengths in plan.shapes]
    half = estimate_memory(ODD, 50, 11, shared, "bfloat16")

    state = memory["weights"] + memory["gradients"] + memory["optimizer"]
    assert state == 16 * count_parameters(ODD, 50, 11)
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
    model = Transformer(vocabulary_size, ODD, 70)
    plan = plan_of(lengths)

    for epoch in range(3):
        first = epoch * plan.batches_per_pass
        j = find_largest_batch(model, plan, first + 1, 1, None, "float32")

        assert first <= j < first + plan.batches_per_pass
        assert plan.shape(j) == largest
    parts = find_largest_batch(model, plan, 0, 2, 50, "bfloat16")
    assert plan.shape(parts) in plan.shapes
