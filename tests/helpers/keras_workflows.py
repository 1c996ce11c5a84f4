"""Builds, trains, saves and loads a model as a Keras user does, on any backend.

`python -m tests.helpers.keras_workflows` runs every check with `KERAS_BACKEND`.
"""

import tempfile
import warnings

import keras
import numpy as np
import pytest
from keras import ops

import keras_transformer as kt

V = 19
# Where nothing else is quick; TensorFlow takes seconds to compile by XLA.
JIT = keras.backend.backend() == "jax"
SMALL = kt.Architecture(
    num_layers=1,
    hidden_dim=32,
    intermediate_dim=48,
    num_heads=4,
    key_dim=8,
    value_dim=8,
    dropout=0.0,
)
RANDOM = np.random.default_rng(2017)
SOURCE = np.where(
    np.arange(7) < [[7], [3], [5], [6]], RANDOM.integers(4, V, (4, 7)), 0
)
LABELS = np.where(
    np.arange(6) < [[4], [6], [2], [5]], RANDOM.integers(4, V, (4, 6)), 0
)
TARGET = np.pad(LABELS, ((0, 0), (1, 0)), constant_values=3)[:, :-1]
BATCH = {"source_ids": SOURCE, "target_ids": TARGET}


def make_model(**kwargs):
    keras.utils.set_random_seed(2017)
    model = kt.Transformer(V, SMALL, **kwargs)
    model.build()
    return model


def as_array(x):
    return np.array(ops.convert_to_numpy(ops.cast(x, "float32")))


def relative_error(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def train(model, **kwargs):
    history = model.fit(BATCH, LABELS, batch_size=4, verbose=0, **kwargs)
    return {name: values[-1] for name, values in history.history.items()}


def check_compiles_as_published():
    model = make_model()
    model.compile_as_published("tiny", jit_compile=JIT)

    result = train(model)

    assert {"accuracy", "loss", "perplexity"} <= result.keys()
    optimizer = model.optimizer
    numbers = optimizer.beta_1, optimizer.beta_2, optimizer.epsilon
    assert numbers == (0.9, 0.98, 1e-9)
    rate = 32**-0.5 * 500**-1.5  # Of the first update, 500 of warm-up.
    expected = kt.TransformerSchedule(32, warmup_steps=500)(0)
    np.testing.assert_allclose(as_array(expected), rate, rtol=1e-5)
    assert model.loss.label_smoothing == 0.1
    recipe = kt.Recipe(label_smoothing=0.3)
    for given in (recipe, kt.Preset("of this test", recipe=recipe)):
        model.compile_as_published(given)
        assert model.loss.label_smoothing == 0.3


def decode_greedily(model, source, limit, bos_id, eos_id):
    """Returns the tokens of one translation, each from the whole prefix."""
    ids = []
    while len(ids) < limit - 1 and eos_id not in ids:
        # Of one shape always, which JAX compiles once.
        target = np.zeros((1, SOURCE.shape[1] + 3), "int32")
        target[0, : len(ids) + 1] = bos_id, *ids
        logits = as_array(model([source[None], target]))[0, len(ids)]
        logits[[0, bos_id]] = -np.inf
        ids.append(int(logits.argmax()))
    return ids if eos_id in ids else [*ids, eos_id]


def check_generates():
    """A fresh model, a trained and a loaded one; any begin and end."""
    fresh, trained = make_model(), make_model()
    trained.compile_as_published("tiny", jit_compile=JIT)
    train(trained, epochs=2)
    for model, bos_id, eos_id in ((fresh, 3, 1), (trained, 9, 7)):
        # Logits far enough apart that no rounding decides.
        model.embedding.embeddings.assign(3 * model.embedding.embeddings)
        generated = model.generate(
            SOURCE,
            beam_size=1,
            max_extra_length=3,
            bos_id=bos_id,
            eos_id=eos_id,
        )

        generated = as_array(generated).astype(int)
        assert generated.shape == (4, 7 + 3)
        for row, source in zip(generated, SOURCE, strict=True):
            limit = np.count_nonzero(source) + 3
            expected = decode_greedily(model, source, limit, bos_id, eos_id)
            np.testing.assert_array_equal(row[: len(expected)], expected)
            assert not row[len(expected) :].any()

    with tempfile.TemporaryDirectory() as folder:
        trained.save(f"{folder}/model.keras")
        loaded = keras.saving.load_model(f"{folder}/model.keras")
    beams = [
        as_array(m.generate(SOURCE, max_extra_length=5))
        for m in (trained, loaded)
    ]
    np.testing.assert_array_equal(*beams)
    assert beams[0].shape == (4, 7 + 5)


def check_takes_a_list():
    model = make_model()

    outputs = model([SOURCE, TARGET])

    np.testing.assert_array_equal(as_array(outputs), as_array(model(BATCH)))
    model.compile_as_published(jit_compile=JIT)
    model.fit([SOURCE, TARGET], LABELS, verbose=0)


def check_quantizes():
    model = make_model()
    expected = as_array(model(BATCH))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # NumPy 2.4's, inside Keras.
        warnings.filterwarnings("ignore", message="__array__ implementation")
        model.quantize("int8")

    assert 0 < relative_error(as_array(model(BATCH)), expected) < 0.02
    kernel = model.encoder.layers[0].attention.query_projection._kernel
    assert keras.backend.standardize_dtype(kernel.dtype) == "int8"


def check_has_lora():
    model = make_model()
    before = as_array(model(BATCH))
    model.embedding.trainable = False
    for layer in (*model.encoder.layers, *model.decoder.layers):
        layer.trainable = False
    attention = model.encoder.layers[0].attention
    layer = model.encoder.layers[0]
    layer.trainable = True
    for part in (
        layer.attention_residual,
        layer.feed_forward,
        layer.feed_forward_residual,
        attention.key_projection,
        attention.value_projection,
        attention.output_projection,
    ):
        part.trainable = False
    attention.query_projection.enable_lora(rank=2)

    assert len(model.trainable_weights) == 2
    np.testing.assert_allclose(as_array(model(BATCH)), before, atol=1e-6)
    model.compile(
        keras.optimizers.Adam(0.1), kt.SmoothedCrossentropy(), jit_compile=JIT
    )
    train(model, epochs=3)
    assert relative_error(as_array(model(BATCH)), before) > 1e-3


def check_rematerializes():
    """The feed-forward networks, where most is stored.

    `mode="full"` fails inside Keras for any layer with keyword arguments, see
    https://github.com/keras-team/keras/issues/21207.
    """
    scope = keras.RematScope(
        mode="list_of_layers", layer_names=["feed_forward"]
    )
    with scope:
        scoped = make_model()
    losses = []
    for model in (scoped, make_model()):
        model.compile(
            keras.optimizers.SGD(0.1),
            kt.SmoothedCrossentropy(),
            jit_compile=JIT,
        )
        losses.append(train(model, epochs=3)["loss"])

    np.testing.assert_allclose(*losses, rtol=1e-5)


def check_weighs_metrics():
    model = make_model()
    weights = np.array([1.0, 0.0, 2.0, 1.0], "float32")
    model.compile(
        loss=kt.SmoothedCrossentropy(),
        weighted_metrics=[kt.TokenAccuracy()],
        jit_compile=JIT,
    )

    result = model.evaluate(
        BATCH, LABELS, sample_weight=weights, return_dict=True, verbose=0
    )

    best = as_array(model(BATCH)).argmax(axis=-1)
    counts = (LABELS != 0) * weights[:, None]
    expected = ((best == LABELS) * counts).sum() / counts.sum()
    np.testing.assert_allclose(result["accuracy"], expected, rtol=1e-6)


def check_may_leave_out_padding_with_the_loss_of_keras():
    logits = make_model()(BATCH)
    theirs = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=0
    )

    expected = kt.SmoothedCrossentropy(label_smoothing=0.0)(LABELS, logits)

    np.testing.assert_allclose(
        as_array(theirs(LABELS, logits)), as_array(expected), rtol=1e-5
    )


def check_knows_where_learned_positions_end():
    layer = kt.PositionEmbedding(sequence_length=5)
    x = ops.zeros((1, 3, 4))
    layer.build(x.shape)

    for start_index in (3, ops.convert_to_tensor(3)):
        with pytest.raises(ValueError, match="5 positions.*start_index=3"):
            layer(x, start_index=start_index)
    assert layer(x, start_index=2).shape == (1, 3, 4)
    if keras.backend.backend() == "jax":  # Traced, nothing can be raised.
        import jax

        vectors = jax.jit(lambda index: layer(x, start_index=index))(3)
        assert np.isnan(as_array(vectors)).all()
        vectors = jax.jit(lambda index: layer(x, start_index=index))(2)
        assert np.isfinite(as_array(vectors)).all()


def check_is_fused_as_it_is_not():
    query, key, value = (
        ops.convert_to_tensor(RANDOM.normal(size=(2, 3, length, 8)), "float32")
        for length in (5, 6, 6)
    )
    mask = RANDOM.random((2, 1, 5, 6)) < 0.5
    mask[0, 0, 2] = False  # The mean of all values.

    for allowed in (mask, None):
        fused = kt.attention.fused_attention(query, key, value, allowed)
        expected, _ = kt.attention.scaled_dot_product_attention(
            query, key, value, allowed
        )

        np.testing.assert_allclose(
            as_array(fused), as_array(expected), rtol=1e-5, atol=1e-5
        )


CHECKS = [check for name, check in globals().items() if "check_" in name]

if __name__ == "__main__":
    for check in CHECKS:
        print(check.__name__, flush=True)
        check()
