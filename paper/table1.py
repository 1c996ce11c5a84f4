"""Measures the time of layers against length and width (Table 1).

Self-attention, self-attention restricted to a neighborhood, a recurrent layer
(LSTM) and a convolution run forward and with the gradient, while the length `n`
grows and while the width `d` does. The exponents of the growth are fitted.
Beside them stand those of the paper, which leaves out the linear maps around
attention, and those of all matrix products, which count them: these maps take
`O(n d²)`, more than restricted attention itself.
"""

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from command_line.markdown import format_table
from keras_transformer import MultiHeadAttention, RestrictedSelfAttention

# The complexity of each layer in Table 1: its exponents of n and of d.
PAPER = {
    "self-attention": ("n² d", 2, 1),
    "restricted": ("r n d", 1, 1),
    "recurrent": ("n d²", 1, 2),
    "convolution": ("k n d²", 1, 2),
}
DIRECTIONS = ("forward", "gradient")
FITTED_POINTS = 3  # The largest: what is of lower order fades.
M_MMAP_THRESHOLD = -3  # Of the C library's mallopt.


class Sizes(NamedTuple):
    """What is measured: `n` grows with `d = width`, and `d` with `n = length`."""

    lengths: tuple[int, ...] = (512, 1024, 2048, 4096)
    width: int = 64
    widths: tuple[int, ...] = (64, 128, 256, 512)
    length: int = 4096
    radius: int = 16  # Of restricted attention: r = 2 radius + 1.
    kernel_size: int = 3  # Of the convolution.
    repetitions: int = 5  # The median is taken.


def make_layer(kind: str, width: int, sizes: Sizes) -> Callable:
    """Returns a layer that maps `(B, n, width)` to the same shape."""
    if kind == "self-attention":
        layer = MultiHeadAttention(1, width)
        layer.build((None, None, width), (None, None, width))
        return lambda x: layer(x, x)
    if kind == "restricted":
        layer = RestrictedSelfAttention(1, width, sizes.radius)
    elif kind == "recurrent":
        layer = keras.layers.LSTM(width, return_sequences=True)
    else:
        layer = keras.layers.Conv1D(width, sizes.kernel_size, padding="same")
    layer.build((None, None, width))
    return layer


def count_products(row: dict, sizes: Sizes) -> int:
    """Returns the multiplications in the matrix products of a forward pass."""
    n, d = row["n"], row["d"]
    return {
        # Four linear maps, the logits and the means of values.
        "self-attention": 4 * n * d**2 + 2 * n * n * d,
        # The same, with three blocks of keys for each query.
        "restricted": 4 * n * d**2 + 2 * n * 3 * sizes.radius * d,
        # Four gates, each of the input and of the state before.
        "recurrent": 8 * n * d**2,
        "convolution": sizes.kernel_size * n * d**2,
    }[row["kind"]]


def make_call(row: dict, sizes: Sizes) -> Callable:
    """Returns a function that runs a layer forward, or with its gradient."""
    layer = make_layer(row["kind"], row["d"], sizes)
    shape = (1, row["n"], row["d"])
    random = np.random.default_rng(0).normal(size=shape)
    inputs = tf.Variable(random, dtype=tf.float32)

    @tf.function(autograph=False)
    def call():
        if row["direction"] == "forward":
            return layer(inputs.value())
        with tf.GradientTape() as tape:
            outputs = layer(inputs.value())
        # All that is watched: the inputs and the layer's weights.
        return tape.gradient(outputs, tape.watched_variables())

    return call


def time_call(call: Callable, repetitions: int) -> float:
    """Returns the median of the seconds of a call."""
    call()
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def list_rows(sizes: Sizes) -> list[dict]:
    points = [("n", length, sizes.width) for length in sizes.lengths]
    points += [("d", sizes.length, width) for width in sizes.widths]
    return [
        {"axis": axis, "n": length, "d": width, "kind": kind, "direction": direction}
        for axis, length, width in points
        for kind in PAPER
        for direction in DIRECTIONS
    ]


def measure(sizes: Sizes) -> list[dict]:
    # GNU's C library keeps large blocks, so that no memory is asked for twice.
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_MMAP_THRESHOLD, 1 << 30)
    return [
        {
            **row,
            "products": count_products(row, sizes),
            "seconds": time_call(make_call(row, sizes), sizes.repetitions),
        }
        for row in list_rows(sizes)
    ]


def fit(rows: list[dict], axis: str, value: str) -> float:
    """Returns the slope of a value against an axis, both by logarithm."""
    chosen = sorted(rows, key=lambda row: row[axis])[-FITTED_POINTS:]
    places, values = (np.log([row[key] for row in chosen]) for key in (axis, value))
    return float(np.polyfit(places, values, 1)[0])


def format_rows(rows: list[dict]) -> str:
    cells = [
        [
            f"{row['n']:,}",
            f"{row['d']:,}",
            row["kind"],
            row["direction"],
            f"{1e3 * row['seconds']:.1f}",
        ]
        for row in rows
    ]
    return format_table(["n", "d", "layer", "", "ms"], cells)


def format_exponents(rows: list[dict]) -> str:
    """Returns the exponents of each layer and direction, beside the paper's."""
    values = {"products": "products", "time": "seconds"}
    cells = []
    for kind, (cost, *exponents) in PAPER.items():
        for direction in DIRECTIONS:
            cells.append([kind, direction, f"O({cost})"])
            for axis, paper in zip("nd", exponents, strict=True):
                wanted = axis, kind, direction
                chosen = [
                    row
                    for row in rows
                    if (row["axis"], row["kind"], row["direction"]) == wanted
                ]
                found = [fit(chosen, axis, value) for value in values.values()]
                cells[-1] += [paper, *(f"{f:.2f}" for f in found)]
    head = ["layer", "", "Table 1", "n: paper", *values, "d: paper", *values]
    return format_table(head, cells)


def run(sizes: Sizes) -> None:
    rows = measure(sizes)
    print(f"{format_rows(rows)}\n\n{format_exponents(rows)}")


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m paper.table1", description=__doc__
    ).parse_args()
    run(Sizes())
