"""Forecasts a time series with the paper's decoder.

The decoder has no input but the positions of the future; all that it knows of
the past comes by attention to a memory, the past behind a linear map. Run

    python examples/time_series.py

The mean absolute error was 0.172; that of the last value repeated, 0.791.
"""

import keras
import numpy as np

import keras_transformer as kt

PAST, FUTURE = 48, 12


def make_series(number, seed):
    """Returns `(number, PAST + FUTURE, 1)`: two seasons, a trend and noise.

    Each series has periods, phases and a slope of its own.
    """
    random = np.random.default_rng(seed)
    time = np.arange(PAST + FUTURE)
    series = random.normal(0, 0.05, (number, len(time)))
    for low, high in ((6, 12), (12, 24)):
        period = random.uniform(low, high, (number, 1))
        phase = random.uniform(0, 2 * np.pi, (number, 1))
        size = random.uniform(0.3, 1, (number, 1))
        series += size * np.sin(2 * np.pi * time / period + phase)
    series += random.normal(0, 0.01, (number, 1)) * time
    return series[:, :, None].astype("float32")


def make_model(width=64, num_layers=3):
    past = keras.Input((PAST, 1))
    memory = keras.layers.Dense(width)(past)
    memory = memory + kt.SinePositionEncoding()(memory)
    # The decoder's inputs: a learned vector for each step ahead.
    target = kt.PositionEmbedding(FUTURE)(memory[:, :FUTURE])
    x = kt.Decoder(
        num_layers=num_layers, num_heads=4, intermediate_dim=4 * width, dropout=0.0
    )(target, memory)
    return keras.Model(past, keras.layers.Dense(1)(x))


def main(number=20_000, epochs=10):
    """Trains, and returns the mean absolute errors: of it, of a constant."""
    keras.utils.set_random_seed(0)
    series, test = make_series(number, 0), make_series(1_000, 1)
    model = make_model()
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(1e-3, epochs * number // 64)
        ),
        "mae",
    )
    model.fit(
        series[:, :PAST], series[:, PAST:], batch_size=64, epochs=epochs, verbose=2
    )
    error = model.evaluate(test[:, :PAST], test[:, PAST:], verbose=0)
    constant = np.mean(abs(test[:, PAST:] - test[:, PAST - 1 : PAST]))
    return error, float(constant)


if __name__ == "__main__":
    print("error {:.3f}; {:.3f} if nothing changed".format(*main()))
