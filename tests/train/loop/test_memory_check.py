import dataclasses

import numpy as np
import pytest

from keras_transformer import PRESETS, Transformer
from tests.helpers.other_systems.converted_runs import CustomOutputModel
from train.data.batch_plan import BatchPlan
from train.data.encoded_pairs import EncodedPairs, Ids
from train.loop.memory_check import find_largest_batch

ODD = dataclasses.replace(
    PRESETS["tiny"].architecture,
    num_layers=2,
    hidden_dim=10,
    intermediate_dim=14,
    num_heads=3,
    key_dim=5,
    value_dim=7,
)


@pytest.mark.parametrize(
    ("kind", "lengths", "limit", "largest"),
    [
        # The long sources have short targets: others have more logits.
        (CustomOutputModel, [(10, 10)] * 80 + [(40, 4)] * 16, None, (32, 10, 10)),
        (Transformer, [(10, 10)] * 80 + [(60, 4)] * 16, None, (8, 60, 10)),
        # As many positions, but longer rows of attention weights.
        (Transformer, [(10, 10)] * 80 + [(40, 40)] * 16, None, (8, 40, 40)),
        # A micro-batch has six sentences of the first shape, one of the other.
        (CustomOutputModel, [(10, 10)] * 80 + [(40, 40)] * 16, 63, (32, 10, 10)),
    ],
)
def test_the_largest_batch_needs_most_memory(kind, lengths, limit, largest):
    model = kind(5_000, ODD, 70)
    sides = [
        Ids(np.ones(sum(side), np.int32), np.cumsum([0, *side]))
        for side in zip(*lengths, strict=True)
    ]
    plan = BatchPlan(EncodedPairs(*sides), 320, seed=0)

    for epoch in range(3):
        first = epoch * plan.batches_per_pass
        j = find_largest_batch(model, plan, first + 1, 1, limit)

        assert first <= j < first + plan.batches_per_pass
        assert plan.shape(j) == largest
