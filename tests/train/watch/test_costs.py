"""Tests of `train.watch.costs`."""

import dataclasses

import numpy as np
import pytest

from keras_transformer import PRESETS
from keras_transformer import Transformer
from train.data.batches import BatchPlan
from train.data.vocabulary import EncodedPairs
from train.data.vocabulary import Ids
from train.watch.costs import count_flops
from train.watch.costs import count_parameters
from train.watch.costs import estimate_memory

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
        Ids(np.ones(offsets[-1] * times, np.int32), offsets * times)
        for times in (1, 2)
    ]
    return BatchPlan(EncodedPairs(*sides), batch_tokens=8, seed=0)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("positions", ["sine", "learned"])
def test_counts_the_parameters_of_the_model(norm, positions):
    architecture = dataclasses.replace(ODD, norm=norm, positions=positions)
    model = Transformer(50, architecture, sequence_length=11)
    model.build()

    assert count_parameters(architecture, 50, 11) == model.count_params()


def test_the_base_model_has_the_parameters_of_table_3():
    millions = count_parameters(PRESETS["base"].architecture, 37_000, 256) / 1e6

    assert millions == pytest.approx(65, rel=0.05)


def test_counts_the_flops_of_every_product():
    plan = make_plan()
    products = 0  # Multiplications of a forward pass, one epoch.
    for batches, (rows, source, target) in zip(
        plan.num_batches, plan.shapes, strict=True
    ):
        layer = 0  # One of the encoder and one of the decoder.
        for queries, keys in (
            (source, source),
            (target, target),
            (target, source),
        ):
            layer += queries * 10 * (3 * 5 + 3 * 7)  # And the output.
            layer += keys * 10 * (3 * 5 + 3 * 7)
            layer += 3 * queries * keys * (5 + 7)
        layer += (source + target) * 10 * 14 * 2
        products += batches * rows * 2 * layer
    products += plan.target_tokens * 10 * 50

    assert plan.shapes == ((8, 3, 6), (8, 5, 10))
    assert plan.num_batches == (2, 2)
    # Two operations a multiplication; the backward pass takes two such.
    flops = count_flops(ODD, 50, plan)
    assert flops == pytest.approx(6 * products / plan.steps_per_epoch)


def test_memory_counts_weights_four_times_and_the_largest_batch():
    plan = make_plan()
    memory = estimate_memory(ODD, 50, 11, plan)
    half = estimate_memory(ODD, 50, 11, plan, "bfloat16", num_parts=2)

    state = memory["weights"] + memory["gradients"] + memory["optimizer"]
    assert state == 16 * count_parameters(ODD, 50, 11)
    assert memory["logits"] == 3 * 4 * 8 * 10 * 50
    assert half["logits"] == memory["logits"] // 2
    assert half["activations"] == memory["activations"] // 4
