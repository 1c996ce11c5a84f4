"""Draws the figures of the guide with the code that the guide shows."""

import pathlib

import keras
import matplotlib
import numpy as np

import keras_transformer as kt
from keras_transformer.layers.attention import scaled_dot_product_attention
from keras_transformer.search.options import length_penalty_of
from paper import table1

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


def draw_embedding_scale(axes):
    """Lengths of embeddings, scaled and not, beside those of positions."""
    keras.utils.set_random_seed(0)
    ids = np.arange(1, 1000)[None]
    embedded = kt.TokenEmbedding(1000, 512)(ids)
    positions = kt.SinePositionEncoding()(embedded)
    bins = np.linspace(0, 30, 120)
    for values, label in (
        (embedded / 512**0.5, "embedding"),
        (embedded, "embedding · √d_model"),
        (positions, "position"),
    ):
        lengths = np.linalg.norm(np.array(values)[0], axis=-1)
        axes.hist(lengths, bins, label=label)
    axes.set(xlabel="length of the vector", ylabel="vectors")
    axes.legend()


def draw_smoothing(axes):
    """The loss of one token, as its probability grows."""
    probability = np.linspace(0.01, 0.99, 99)
    size = 10  # Tokens of the vocabulary; the wrong ones share the rest.
    rest = np.log((1 - probability) / (size - 1))
    logits = np.tile(rest[:, None], (1, size))
    logits[:, 1] = np.log(probability)
    labels = np.ones((99, 1), "int32")
    for smoothing in (0.0, 0.1, 0.2):
        loss = kt.SmoothedCrossentropy(smoothing, reduction="none")
        losses = loss(labels, logits[:, None].astype("float32"))
        axes.plot(probability, np.ravel(losses), label=f"ε = {smoothing}")
    axes.set(xlabel="probability of the right token", ylabel="loss")
    axes.legend()


def draw_length_penalty(axes):
    lengths = np.arange(1, 61)
    for alpha in (0.0, 0.6, 1.0):
        penalties = length_penalty_of(lengths, alpha)
        axes.plot(lengths, penalties, label=f"α = {alpha}")
    axes.set(xlabel="tokens n", ylabel="((5 + n) / 6)^α")
    axes.legend()


def draw_causal_mask(axes):
    axes.imshow(np.array(kt.causal_mask(12)), cmap="Blues")
    axes.set(xlabel="key", ylabel="query", title="dark: may be seen")


def draw_positions(axes):
    table = kt.SinePositionEncoding()(keras.ops.zeros((1, 64, 128)))[0]
    axes.imshow(np.array(table), aspect="auto", cmap="RdBu")
    axes.set(xlabel="feature", ylabel="position")


def draw_operations(axes):
    """Products of a layer of 512 features, as `paper.table1` has."""
    lengths = np.arange(1, 4097)
    for kind in ("self-attention", "restricted", "recurrent", "convolution"):
        row = {"kind": kind, "n": lengths, "d": 512}
        counts = table1.count_products(row, table1.Sizes()) / lengths / 1e6
        axes.plot(lengths, counts, label=kind)
    axes.set(xlabel="length n", ylabel="million multiplications\na position")
    axes.legend()


def draw_schedule(axes):
    steps = np.arange(20_000)
    for width, warmup in ((512, 4000), (512, 8000), (256, 4000)):
        schedule = kt.TransformerSchedule(width, warmup)
        axes.plot(steps, schedule(steps), label=f"{width}, {warmup:,}")
    axes.set(xlabel="step", ylabel="learning rate")
    axes.legend(title="d_model, warm-up")


PICTURES = (
    draw_softmax,
    draw_embedding_scale,
    draw_smoothing,
    draw_length_penalty,
    draw_causal_mask,
    draw_positions,
    draw_operations,
    draw_schedule,
)


def main():
    FOLDER.mkdir(exist_ok=True)
    for draw in PICTURES:
        figure, axes = pyplot.subplots(figsize=(6, 3.2))
        draw(axes)
        figure.tight_layout()
        figure.savefig(FOLDER / f"{draw.__name__.removeprefix('draw_')}.svg")
        pyplot.close(figure)


if __name__ == "__main__":
    main()
