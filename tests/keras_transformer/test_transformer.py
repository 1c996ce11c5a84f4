import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import (
    Architecture,
    Preset,
    SinePositionEncoding,
    SmoothedCrossentropy,
    Transformer,
    TransformerSchedule,
    padding_mask,
)
from tests.helpers.layer_checks import mask_of, randomize_weights
from tests.helpers.oracles.numpy_oracles import assert_close

B, T, S, D, V = 3, 5, 6, 8, 13
SIZES = {"vocabulary_size": V, "num_layers": 1, "hidden_dim": D, "dropout": 0.0}
SIZES |= {"intermediate_dim": 16, "num_heads": 2, "key_dim": 7, "value_dim": 4}
BATCH = {
    "source_ids": np.array(
        [[9, 5, 7, 12, 4, 1], [4, 1, 0, 0, 0, 0], [6, 8, 6, 1, 0, 0]]
    ),
    "target_ids": np.array([[3, 9, 4, 5, 8], [3, 4, 0, 0, 0], [3, 7, 6, 0, 0]]),
}
LABELS = np.array([[9, 4, 5, 8, 1], [4, 1, 0, 0, 0], [7, 6, 1, 0, 0]])


def make_model(**kwargs):
    model = Transformer.from_preset("base", **{**SIZES, **kwargs})
    model.build()
    randomize_weights(model)
    return model


@pytest.fixture(scope="module")
def model():
    return make_model()


def test_shapes_and_types_are_known_beforehand():
    model = Transformer.from_preset("base", **SIZES, dtype="mixed_bfloat16")
    symbols = {
        name: keras.Input((None,), dtype="int32")
        for name in ("source_ids", "target_ids")
    }

    logits = model(symbols)

    assert logits.shape == (None, None, V)
    assert logits.dtype == model(BATCH).dtype == "bfloat16"
    assert model(BATCH).shape == (B, T, V)
    assert all(weight.dtype == "float32" for weight in model.weights)
    shapes = {"source_ids": (B, S), "target_ids": (B, T)}
    assert model.compute_output_shape(shapes) == (B, T, V)


@pytest.mark.parametrize("positions", ["sine", "learned"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_figure_1(norm, positions):
    model = make_model(norm=norm, positions=positions, sequence_length=9)
    table = model.embedding.get_weights()[0]

    def embed(ids):
        vectors = table[ids] * np.sqrt(D)
        if positions == "learned":
            (rows,) = model.position_encoding.get_weights()
            return vectors + rows[: ids.shape[1]]
        return vectors + SinePositionEncoding()(vectors)

    source_mask = BATCH["source_ids"] != 0
    memory = model.encoder(embed(BATCH["source_ids"]), mask=source_mask)
    states = model.decoder(
        embed(BATCH["target_ids"]),
        memory,
        target_mask=BATCH["target_ids"] != 0,
        memory_mask=source_mask,
    )

    assert_close(model(BATCH), states @ table.T)


@pytest.mark.parametrize("side", ["source", "target"])
def test_dropout_falls_on_the_sums_of_embeddings_and_positions(side):
    keras.utils.set_random_seed(2017)
    width = 40
    model = make_model(norm="pre", dropout=0.5, hidden_dim=width)
    stack = model.encoder if side == "source" else model.decoder
    # Silent sub-layers leave the residual stream, which is normalized last.
    stack.set_weights([np.zeros(weight.shape) for weight in stack.weights])
    stack.normalization.gamma.assign(np.ones(width))
    ids = BATCH[f"{side}_ids"]
    vectors = model.embedding(ids)
    sums = np.array(vectors + SinePositionEncoding()(vectors))

    if side == "source":
        outputs = model.encode(ids, training=True)
    else:
        memory = np.zeros((B, S, width), "float32")
        outputs = model.decode_states(ids, memory, training=True)

    for output, total in zip(
        np.reshape(outputs, (-1, width)), sums.reshape(-1, width), strict=True
    ):
        # The value of dropped features is the only one that repeats.
        values, counts = np.unique(np.round(output, 4), return_counts=True)
        kept = np.abs(output - values[counts.argmax()]) > 1e-4
        assert 0.1 < kept.mean() < 0.9
        expected = np.where(kept, 2 * total, 0)  # 2 = 1 / (1 - dropout)
        expected = (expected - expected.mean()) / expected.std()
        np.testing.assert_allclose(output, expected, atol=1e-4)


def loss_and_gradients(model, batch, labels):
    with tf.GradientTape() as tape:
        loss = SmoothedCrossentropy()(labels, model(batch, training=True))
    gradients = tape.gradient(loss, [w.value for w in model.trainable_weights])
    return loss, [tf.convert_to_tensor(gradient) for gradient in gradients]


def pad(array, columns):
    return np.pad(array, ((0, 0), (0, columns)))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_padding_changes_neither_loss_nor_gradients(norm):
    model = make_model(num_layers=2, norm=norm)
    padded = {
        "source_ids": pad(BATCH["source_ids"], 4),
        "target_ids": pad(BATCH["target_ids"], 3),
    }
    # Targets after EOS count as padding: no label follows.
    filled = padded["target_ids"].copy()
    behind = pad(LABELS, 3) == 0
    filled[behind] = np.random.default_rng(1).integers(1, V, behind.sum())

    expected, expected_gradients = loss_and_gradients(model, BATCH, LABELS)
    for batch in (padded, {**padded, "target_ids": filled}):
        loss, gradients = loss_and_gradients(model, batch, pad(LABELS, 3))

        assert_close(loss, expected)
        for gradient, other in zip(gradients, expected_gradients, strict=True):
            assert np.abs(other).max() > 0
            assert_close(gradient, other)


def test_the_logits_carry_no_mask(model):
    assert mask_of(model(BATCH)) is None


@pytest.mark.parametrize(("norm", "positions"), [("post", "learned"), ("pre", "sine")])
def test_cached_equals_uncached_for_every_beam(norm, positions):
    beams = 3
    model = make_model(norm=norm, positions=positions, sequence_length=7)
    source_ids = BATCH["source_ids"]
    target_ids = np.random.default_rng(1).integers(1, V, (B * beams, T))
    memory, mask = model.encode(source_ids), padding_mask(source_ids)
    cache = model.decoder.make_cache(7, memory, num_beams=beams)

    steps = []
    for index in range(T):
        logits, cache = model.decode(
            target_ids[:, index : index + 1], memory_mask=mask, cache=cache
        )
        steps.append(logits)

    expected = model(
        {"source_ids": np.repeat(source_ids, beams, axis=0), "target_ids": target_ids}
    )
    assert_close(np.concatenate(steps, axis=1), expected)


def test_a_compiled_model_learns_and_comes_back_from_disk(tmp_path):
    keras.utils.set_random_seed(2017)
    model = Transformer.from_preset("base", **{**SIZES, "num_layers": 2})
    model.compile(
        keras.optimizers.Adam(
            TransformerSchedule(D, warmup_steps=40), beta_2=0.98, epsilon=1e-9
        ),
        SmoothedCrossentropy(),
        run_eagerly=True,
    )
    model.build()
    before = model.get_weights()
    model.fit(BATCH, LABELS, epochs=5, verbose=0)
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert not np.array_equal(weight.numpy(), old), weight.path
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")

    np.testing.assert_array_equal(again(BATCH), model(BATCH))
    assert again.optimizer.iterations == model.optimizer.iterations == 5
    # The step after that is the same too: moments and schedule came along.
    model.reset_metrics()  # Keras 3.14 would average over `fit`'s last epoch, too.
    losses = [each.train_on_batch(BATCH, LABELS) for each in (again, model)]
    assert_close(*losses)
    for one, other in zip(again.get_weights(), model.get_weights(), strict=True):
        assert_close(one, other)


def test_a_preset_may_be_ones_own_and_gives_way_to_arguments():
    preset = Preset("of this test", Architecture(num_layers=2, num_heads=3, norm="pre"))

    model = Transformer.from_preset(preset, V, num_layers=1, dropout=0.4, name="mine")

    assert model.architecture == Architecture(
        num_layers=1, num_heads=3, norm="pre", dropout=0.4
    )
    assert model.name == "mine"


def test_refuses_more_tokens_than_positions_are_learned():
    model = make_model(positions="learned", sequence_length=S - 1)

    with pytest.raises(ValueError, match=f"may have {S - 1} positions at most"):
        model(BATCH)
    with pytest.raises(ValueError, match=f"`source_ids` may have {S - 1} tok"):
        model.generate(BATCH["source_ids"])
