"""Trains small models: on random ids, and by `python -m train` on a tiny corpus."""

from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf

import train.__main__ as train_command
from keras_transformer import PRESETS
from tests.helpers.error_capture import refusal
from train.data.batch_plan import BatchPlan
from train.data.batches import make_dataset
from train.data.corpus import demo_pairs
from train.data.encoded_pairs import EncodedPairs, Ids
from train.fit import TrainingOptions, make_training_model
from train.run.run_folder import read_history

TINY_OPTIONS = [
    *("--preset=tiny", "--recipe=paper", "--num-layers=1", "--hidden-dim=8"),
    *("--intermediate-dim=8", "--num-heads=1", "--key-dim=8", "--value-dim=8"),
    *("--vocabulary-size=340", "--batch-tokens=64", "--steps=3", "--steps-per-epoch=2"),
    *("--average=2", "--max-length=90"),
    "--validate-bleu=0",  # A search takes as long as all the rest.
]
# Columns of a history that no run repeats.
VOLATILE = ("tokens_per_second", "minutes_left")
OPTIONS = [*TINY_OPTIONS, "--steps=24", "--steps-per-epoch=6", "--dropout=0.3"]


def write_corpus(folder):
    """Writes four small files, one with a line to drop; returns their options."""
    pairs = demo_pairs("validation")
    options = []
    for name, lines in (
        ("train-source", ["", *pairs.sources[:60]]),
        ("train-target", ["x", *pairs.targets[:60]]),
        ("validation-source", pairs.sources[60:70]),
        ("validation-target", pairs.targets[60:70]),
    ):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        options += [f"--{name}", str(folder / name)]
    return options


def load_weights(path):
    return keras.saving.load_model(path, compile=False).get_weights()


def assert_same_run(run_dir, other):
    """Checks that histories, but for speed, and models are equal to a bit."""
    rows, others = (
        [{k: v for k, v in row.items() if k not in VOLATILE} for row in rows]
        for rows in map(read_history, (run_dir, other))
    )
    assert rows == others
    for a, b in zip(
        *(load_weights(run / "model.keras") for run in (run_dir, other)), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def claim_run(command):
    """Runs `python -m train` until its first update; returns its training plan."""
    with mock.patch.object(train_command.fit, "fit", side_effect=SystemExit) as fit:
        with pytest.raises(SystemExit):
            train_command.main(list(map(str, command)))
        return fit.call_args.args[1]


def refused(capsys, arguments):
    return refusal(capsys, train_command.main, arguments)


VOCABULARY_SIZE = 61
SETTINGS = TrainingOptions(batch_tokens=120, steps_per_epoch=3)


def preset(**changes):
    sizes = {"num_layers": 1, "hidden_dim": 16, "intermediate_dim": 24, "num_heads": 2}
    sizes |= {"key_dim": 8, "value_dim": 8, "warmup_steps": 100, "dropout": 0.0}
    return PRESETS["tiny"].replace(**{**sizes, **changes})


def small_task(settings=SETTINGS, strategy=None, **changes):
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
    """Trains; returns the weights and the history of `fit`."""
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
