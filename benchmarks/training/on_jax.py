"""Measures updates of the paper's models on JAX, beside flax's example.

    KERAS_BACKEND=jax python -m benchmarks.training.on_jax \\
        --flax-wmt flax/examples/wmt

The package's model is trained by `fit`. The other one is flax's `examples/wmt`,
with the update of its `train.py`, of the same sizes. Both multiply in bfloat16,
and alternate in one process.
"""

import argparse
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.shared.interleaved_runs import format_spread
from benchmarks.shared.model_sizes import (
    LABEL_SMOOTHING,
    SIZES,
    Size,
    count_flops,
    make_batch,
)
from command_line.markdown import format_table
from keras_transformer import Architecture, SmoothedCrossentropy, Transformer

# Batches of 25,088 positions of a side, as in Section 5.1; Table 3.
JAX_SIZES = {
    "base": Size(6, 512, 2048, 8, 0.1, 37_000, 784, 32),
    "big": Size(6, 1024, 4096, 16, 0.3, 37_000, 784, 32),
    "check": SIZES["check"],
}
ADAM = {"b1": 0.9, "b2": 0.98, "eps": 1e-9}
HEAD = ("size", "system", "s an update", "target tokens/s", "of peak", "loss")


def make_package_updates(size: Size, batch: dict, steps: int) -> Callable[[], float]:
    """Returns a function that makes `steps` updates and returns a loss."""
    model = Transformer(
        size.vocabulary_size,
        Architecture(**size.hyperparameters()),
        dtype="mixed_bfloat16",
    )
    model.compile(
        keras.optimizers.Adam(1e-4, *ADAM.values()),
        SmoothedCrossentropy(LABEL_SMOOTHING),
    )
    inputs = {
        name: np.tile(batch[name], (steps, 1)) for name in ("source_ids", "target_ids")
    }
    labels = np.tile(batch["labels"], (steps, 1))

    def update():
        history = model.fit(
            inputs, labels, batch_size=size.rows, shuffle=False, verbose=0
        )
        return history.history["loss"][0]

    return update


def make_flax_updates(size: Size, batch: dict, steps: int) -> Callable[[], float]:
    """Returns the same for flax's model, with the update of its `train.py`."""
    import models
    import optax

    config = models.TransformerConfig(
        vocab_size=size.vocabulary_size,
        output_vocab_size=size.vocabulary_size,
        share_embeddings=True,
        logits_via_embedding=True,
        dtype=jnp.bfloat16,
        emb_dim=size.hidden_dim,
        num_heads=size.num_heads,
        num_layers=size.num_layers,
        qkv_dim=size.hidden_dim,
        mlp_dim=size.intermediate_dim,
        max_len=size.length,
        dropout_rate=size.dropout,
        attention_dropout_rate=0.0,
    )
    model = models.Transformer(config)
    ids = jnp.ones((1, size.length), jnp.int32)
    still = models.Transformer(config.replace(deterministic=True))
    weights = jax.jit(still.init)(jax.random.key(0), ids, ids)["params"]
    optimizer = optax.adamw(1e-4, **ADAM, weight_decay=0.0)
    wrong = LABEL_SMOOTHING / (size.vocabulary_size - 1)

    def loss_of(weights, batch, key):
        ids = batch["source_ids"], batch["labels"]
        logits = model.apply({"params": weights}, *ids, rngs={"dropout": key})
        # As its `compute_weighted_cross_entropy`.
        is_label = batch["labels"][..., None] == jnp.arange(size.vocabulary_size)
        wanted = jnp.where(is_label, 1 - LABEL_SMOOTHING, wrong)
        losses = -jnp.sum(wanted * jax.nn.log_softmax(logits), axis=-1)
        return jnp.sum(losses) / batch["num_tokens"]

    def step(state, batch, number):
        weights, moments = state
        key = jax.random.fold_in(jax.random.key(1), number)
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch, key)
        changes, moments = optimizer.update(gradients, moments, weights)
        return (optax.apply_updates(weights, changes), moments), loss

    step = jax.jit(step, donate_argnums=0)
    state = weights, optimizer.init(weights)
    batch = {name: jnp.asarray(values) for name, values in batch.items()}

    def update():
        nonlocal state
        for number in range(steps):
            state, loss = step(state, batch, number)
        return float(loss)

    return update


def measure_peak(width: int) -> float:
    """Returns the FLOP a second of a product of matrices in bfloat16."""
    keys = jax.random.split(jax.random.key(0))
    a, b = (jax.random.normal(key, (width, width), jnp.bfloat16) for key in keys)
    multiply = jax.jit(jnp.matmul)
    multiply(a, b).block_until_ready()
    times = []
    for _ in range(10):
        started = time.perf_counter()
        for _ in range(10):
            product = multiply(a, b)
        product.block_until_ready()
        times.append((time.perf_counter() - started) / 10)
    return 2 * width**3 / statistics.median(times)


def measure(name: str, peak: float, args: argparse.Namespace) -> list[list]:
    """Returns a row of the table for each system."""
    size = JAX_SIZES[name]
    batch = make_batch(size, fill=1.0)
    positions = size.rows * size.length
    systems = {"package": make_package_updates(size, batch, args.steps)}
    if args.flax_wmt:
        systems["flax"] = make_flax_updates(size, batch, args.steps)
    for update in systems.values():
        update()
    times = {system: [] for system in systems}
    losses = {}
    for _ in range(args.repetitions):
        for system, update in systems.items():
            started = time.perf_counter()
            losses[system] = update()
            times[system].append((time.perf_counter() - started) / args.steps)
    rows = []
    for system, seconds in times.items():
        middle = statistics.median(seconds)
        share = count_flops(size, positions) / middle / peak
        speed = f"{positions / middle:,.0f}"
        loss = f"{losses[system]:.2f}"
        spread = format_spread(seconds, ".4f")
        rows.append([name, system, spread, speed, f"{share:.0%}", loss])
    return rows


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training.on_jax",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--sizes", nargs="+", choices=JAX_SIZES, default=["base", "big"])
    add("--steps", type=int, default=20, help="updates per run (20)")
    add("--repetitions", type=int, default=5, help="runs per system (5)")
    add("--product-width", type=int, default=8192, help="of the peak (8192)")
    flax = "folder examples/wmt of flax; without it, only the package"
    add("--flax-wmt", type=pathlib.Path, metavar="DIR", help=flax)
    args = parser.parse_args(argv)
    backend = keras.backend.backend()
    if backend != "jax":
        parser.error(f"KERAS_BACKEND must be jax. Received: KERAS_BACKEND={backend}")
    return args


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    if args.flax_wmt:
        sys.path.insert(0, str(args.flax_wmt))
    peak = measure_peak(args.product_width)
    device = jax.devices()[0].device_kind
    print(f"{device}, JAX {jax.__version__}, Keras {keras.__version__}")
    print(f"peak: {peak / 1e12:,.0f} TFLOP/s\n")
    rows = [row for name in args.sizes for row in measure(name, peak, args)]
    print(format_table(HEAD, rows))


if __name__ == "__main__":
    main()
