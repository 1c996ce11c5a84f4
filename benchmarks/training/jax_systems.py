"""Training of this package on JAX, and of flax's `examples/wmt`.

The folder of that example must be in `PYTHONPATH`.
"""

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.model_sizes import LABEL_SMOOTHING, PADDING_ID, Size
from keras_transformer import Architecture, SmoothedCrossentropy, Transformer

ADAM = {"b1": 0.9, "b2": 0.98, "eps": 1e-9}


def load_package(size: Size, precision: str):
    """Returns functions of batches for `fit`."""
    model = Transformer(
        size.vocabulary_size,
        Architecture(**size.hyperparameters()),
        dtype="float32" if precision == "float32" else f"mixed_{precision}",
    )
    model.compile(
        keras.optimizers.Adam(1e-4, *ADAM.values()),
        SmoothedCrossentropy(LABEL_SMOOTHING),
    )

    def update(batch, steps):
        source_ids, target_ids, labels = (
            np.tile(batch[name], (steps, 1))
            for name in ("source_ids", "target_ids", "labels")
        )
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        history = model.fit(
            inputs, labels, batch_size=size.rows, shuffle=False, verbose=0
        )
        return history.history["loss"][0]

    return lambda batch: batch, update


def load_flax(size: Size, precision: str):
    """Returns the same for flax's model, with the update of its `train.py`."""
    import models
    import optax

    config = models.TransformerConfig(
        vocab_size=size.vocabulary_size,
        output_vocab_size=size.vocabulary_size,
        share_embeddings=True,
        logits_via_embedding=True,
        dtype=jnp.dtype(precision),
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
        losses = jnp.where(batch["labels"] == PADDING_ID, 0.0, losses)
        return jnp.sum(losses) / batch["num_tokens"]

    def step(state, batch, number):
        weights, moments = state
        key = jax.random.fold_in(jax.random.key(1), number)
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch, key)
        changes, moments = optimizer.update(gradients, moments, weights)
        return (optax.apply_updates(weights, changes), moments), loss

    step = jax.jit(step, donate_argnums=0)
    state = weights, optimizer.init(weights)

    def update(batch, steps):
        nonlocal state
        for number in range(steps):
            state, loss = step(state, batch, number)
        return float(loss)

    return lambda batch: jax.tree.map(jnp.asarray, batch), update


def make_product(width: int, precision: str):
    """Returns a function that multiplies two square matrices, some times."""
    keys = jax.random.split(jax.random.key(0))
    a, b = (jax.random.normal(key, (width, width), precision) for key in keys)
    multiply = jax.jit(jnp.matmul)

    def product(times):
        for _ in range(times):
            found = multiply(a, b)
        return float(found[0, 0])

    return product
