"""Small models that train on random ids for a few updates."""

import keras
import numpy as np
import tensorflow as tf

from keras_transformer import PRESETS
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.data.encoded_pairs import EncodedPairs, Ids
from train.fit import UpdateOptions, make_training_model

VOCABULARY_SIZE = 61
SETTINGS = UpdateOptions(batch_tokens=120, steps_per_epoch=3)


def preset(**changes):
    sizes = {"num_layers": 1, "hidden_dim": 16, "intermediate_dim": 24, "num_heads": 2}
    sizes |= {"key_dim": 8, "value_dim": 8, "warmup_steps": 100, "dropout": 0.0}
    return PRESETS["tiny"].replace(**{**sizes, **changes})


def small_task(settings=SETTINGS, strategy=None, **changes):
    """Makes the task of a small model, by default on one device."""
    strategy = strategy or tf.distribute.get_strategy()
    return make_training_model(
        preset(**changes), VOCABULARY_SIZE, 16, settings, strategy
    )


def make_ids(lengths, first):
    """Makes sequences; each has its own token."""
    flat = np.concatenate([[first + i] * (n - 1) + [1] for i, n in lengths])
    offsets = np.cumsum([0] + [n for _, n in lengths])
    return Ids(flat.astype(np.int32), offsets)


def make_training_pairs():
    """37 pairs whose lengths differ much, so that replicas' tokens do."""
    random = np.random.default_rng(3)
    lengths = random.integers(2, 14, (2, 37))
    return EncodedPairs(
        *[make_ids([(i % 50, n) for i, n in enumerate(side)], 4) for side in lengths]
    )


def weights_after_twenty_updates(
    pairs, adam, strategy=None, limit=None, settings=SETTINGS, **changes
):
    """Trains; returns the weights and what the progress bar would show."""
    strategy = strategy or tf.distribute.get_strategy()
    task = small_task(settings, strategy, **changes)
    plan = BatchPlan(pairs, 120, seed=0)
    with strategy.scope():
        if not adam:
            task.compile(keras.optimizers.SGD(0.5), jit_compile=False)
            task.optimizer.build(task.trainable_variables)
        history = task.fit(
            make_dataset(plan, strategy, limit=limit),
            steps_per_epoch=20,
            validation_data=make_dataset(
                plan, strategy, last=plan.batches_per_pass, limit=limit
            ),
            validation_steps=plan.batches_per_pass,
            shuffle=False,
            verbose=0,
        )
    return task.transformer.get_weights(), history.history
