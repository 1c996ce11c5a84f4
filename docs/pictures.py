"""Draws the pictures of the guide by the code that the guide shows."""

import pathlib

import keras
import matplotlib
import numpy as np

import keras_transformer as kt
from keras_transformer.attention import scaled_dot_product_attention

matplotlib.use("Agg")
from matplotlib import pyplot

FOLDER = pathlib.Path(__file__).parent / "pictures"


def draw_softmax(axes):
    """Weights of one query over 20 random keys of 64 features."""
    random = np.random.default_rng(4)
    query = random.normal(size=(1, 1, 1, 64)).astype("float32")
    keys = random.normal(size=(1, 1, 20, 64)).astype("float32")
    for factor, label in ((8.0, "Q Kᵀ"), (1.0, "Q Kᵀ / √d_k")):
        _, weights = scaled_dot_product_attention(factor * query, keys, keys)
        axes.plot(np.ravel(weights), "o-", label=label)
    axes.set(xlabel="key", ylabel="attention weight")
    axes.legend()


def draw_causal_mask(axes):
    axes.imshow(np.array(kt.causal_mask(12)), cmap="Blues")
    axes.set(xlabel="key", ylabel="query", title="dark: may be seen")


def draw_positions(axes):
    table = kt.SinePositionEncoding()(keras.ops.zeros((1, 64, 128)))[0]
    axes.imshow(np.array(table), aspect="auto", cmap="RdBu")
    axes.set(xlabel="feature", ylabel="position")


def draw_schedule(axes):
    steps = np.arange(20_000)
    for width, warmup in ((512, 4000), (512, 8000), (256, 4000)):
        schedule = kt.TransformerSchedule(width, warmup)
        axes.plot(steps, schedule(steps), label=f"{width}, {warmup:,}")
    axes.set(xlabel="step", ylabel="learning rate")
    axes.legend(title="d_model, warm-up")


def main():
    FOLDER.mkdir(exist_ok=True)
    for draw in (draw_softmax, draw_causal_mask, draw_positions, draw_schedule):
        figure, axes = pyplot.subplots(figsize=(6, 3.2))
        draw(axes)
        figure.tight_layout()
        figure.savefig(FOLDER / f"{draw.__name__.removeprefix('draw_')}.svg")
        pyplot.close(figure)


if __name__ == "__main__":
    main()
