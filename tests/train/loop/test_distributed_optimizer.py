import keras
import numpy as np
import pytest
import tensorflow as tf

from train.fit import make_strategy
from train.loop.distributed_optimizer import (
    FIRST_LOSS_SCALE,
    STEPS_UNTIL_GROWTH,
    DistributedAdam,
)


def make_variables():
    random = np.random.default_rng(1)
    return [
        keras.Variable(random.normal(size=shape).astype(np.float32), name=name)
        for name, shape in (("table", (7, 3)), ("bias", (5,)))
    ]


def make_gradients(count):
    random = np.random.default_rng(2)
    return [
        [tf.constant(random.normal(size=s), tf.float32) for s in ((7, 3), (5,))]
        for _ in range(count)
    ]


def apply_all(optimizer, variables, gradients):
    optimizer.build(variables)
    for each in gradients:
        norm = optimizer.apply(each, variables)
    return [variable.numpy() for variable in variables], norm


def test_scales_the_loss_down_after_an_overflow_and_up_again():
    optimizer = DistributedAdam(0.1, scale_loss=True)
    variables = make_variables()
    optimizer.build(variables)
    scale = float(optimizer.loss_scale)
    assert float(optimizer.scale_loss(tf.constant(2.0))) == 2 * scale

    bad = [tf.fill(v.shape, np.inf) for v in variables]
    optimizer.apply(bad, variables)
    assert float(optimizer.loss_scale) == scale / 2

    apply = tf.function(lambda: optimizer.apply(make_gradients(1)[0], variables))
    for _ in range(STEPS_UNTIL_GROWTH):
        apply()
    assert float(optimizer.loss_scale) == scale


SCHEDULE = keras.optimizers.schedules.PolynomialDecay(0.1, 20)


def make_theirs():
    """Returns Keras's Adam with the numbers of the paper."""
    return keras.optimizers.Adam(SCHEDULE, 0.9, 0.98, 1e-9)


# The epsilon decides where gradients are about as small.
@pytest.mark.parametrize(
    ("size", "scales", "tolerance"),
    [(1.0, False, 1e-6), (1e-9, False, 1e-4), (1e-9, True, 1e-4)],
)
def test_takes_the_steps_of_keras(size, scales, tolerance):
    gradients = [[size * g for g in each] for each in make_gradients(12)]
    expected, _ = apply_all(make_theirs(), make_variables(), gradients)
    optimizer = DistributedAdam(SCHEDULE, scale_loss=scales)
    factor = FIRST_LOSS_SCALE if scales else 1.0
    scaled = [[factor * g for g in each] for each in gradients]

    weights, norm = apply_all(optimizer, make_variables(), scaled)

    assert int(optimizer.iterations) == 12
    flat = np.concatenate([np.ravel(g) for g in gradients[-1]])
    np.testing.assert_allclose(norm, np.linalg.norm(flat), rtol=1e-6)
    for a, b in zip(weights, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance)


def test_sums_over_replicas_clips_and_skips():
    first, second = make_gradients(2)
    whole = [a + b for a, b in zip(first, second, strict=True)]
    norm = np.linalg.norm(np.concatenate([np.ravel(g) for g in whole]))
    # The last gradient is too small to be clipped.
    clipped = [[0.5 * g for g in whole], [0.1 * g for g in whole]]
    expected, _ = apply_all(make_theirs(), make_variables(), clipped)
    strategy = make_strategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        variables = make_variables()
        optimizer = DistributedAdam(SCHEDULE, clip_norm=float(norm / 2))
        optimizer.build(variables)

    def update(factor):
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        part = [
            factor * tf.gather(pair, replica)
            for pair in zip(first, second, strict=True)
        ]
        return optimizer.apply(part, variables)

    run = tf.function(lambda factor: strategy.run(update, args=(factor,)))
    run(tf.constant(1.0))
    before = [np.array(v) for v in (*variables, *optimizer.variables)]
    run(tf.constant(np.nan))
    skipped = [np.array(v) for v in (*variables, *optimizer.variables)]

    assert optimizer.iterations.numpy() == optimizer.skipped.numpy() == 1
    changed = [not np.array_equal(a, b) for a, b in zip(before, skipped, strict=True)]
    assert sum(changed) == 2  # The counters of what is skipped.
    run(tf.constant(0.1))
    assert optimizer.skipped_in_a_row.numpy() == 0
    for variable, b in zip(variables, expected, strict=True):
        for a in strategy.experimental_local_results(variable.value):
            np.testing.assert_allclose(a, b, atol=1e-5)
