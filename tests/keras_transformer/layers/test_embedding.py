import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import PositionEmbedding, SinePositionEncoding, TokenEmbedding
from tests.helpers.layer_checks import mask_of, randomize_weights
from tests.helpers.oracles.numpy_oracles import random_array

B, T, D, V = 2, 5, 6, 11
IDS = np.array([[3, 10, 7, 1, 0], [4, 1, 0, 0, 0]])


def sines(positions, hidden_dim, max_wavelength=10_000):
    """Section 3.5, one number at a time, in Python's double precision."""
    table = np.zeros((len(positions), hidden_dim))
    for row, position in enumerate(positions):
        for i in range(hidden_dim):
            angle = position / max_wavelength ** ((i - i % 2) / hidden_dim)
            table[row, i] = np.cos(angle) if i % 2 else np.sin(angle)
    return table


def test_shapes_of_logits_are_known_beforehand():
    layer = TokenEmbedding(V, D)
    states = layer(keras.Input((None,), dtype="int32"))

    assert states.shape == (None, None, D)
    assert layer(states, reverse=True).shape == (None, None, V)
    assert layer.compute_output_shape((B, T, D), reverse=True) == (B, T, V)


@pytest.mark.parametrize("shape", [(B, D), (B, T, D), (B, 4, T, D)])
def test_rows_are_scaled_by_the_root_of_the_width_and_logits_are_not(shape):
    layer = TokenEmbedding(V, D)
    layer.build()
    randomize_weights(layer)
    (table,) = layer.get_weights()
    states = random_array(*shape)

    np.testing.assert_allclose(layer(IDS), table[IDS] * np.sqrt(D), rtol=1e-6)
    np.testing.assert_allclose(
        layer(states, reverse=True), states @ table.T, rtol=1e-5, atol=1e-6
    )


def test_adam_adds_up_the_gradients_of_an_id_that_repeats():
    """Against Kingma and Ba (2015), Algorithm 1, on the dense gradient."""
    layer = TokenEmbedding(5, 2)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, layer(ids))
    model.compile(keras.optimizers.Adam(0.1, 0.9, 0.98, 1e-9), "mse")
    x = layer.embeddings.numpy().astype(np.float64)
    m = v = 0.0

    for t, batch in enumerate(([3, 3, 3, 1], [3, 1, 1, 2]), start=1):
        outputs = x[batch] * 2**0.5
        gradient = np.zeros_like(x)
        np.add.at(gradient, batch, 2 * outputs / outputs.size * 2**0.5)
        m = 0.9 * m + 0.1 * gradient
        v = 0.98 * v + 0.02 * gradient**2
        step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.98**t)) + 1e-9)
        x -= 0.1 * step
        model.train_on_batch(np.array([batch]), np.zeros((1, 4, 2)))

    np.testing.assert_allclose(layer.embeddings.numpy(), x, atol=1e-5)


def test_embeddings_and_logits_start_with_unit_variance():
    keras.utils.set_random_seed(2017)
    layer = TokenEmbedding(3_000, 64)
    layer.build()
    (table,) = layer.get_weights()

    # 192,000 draws: the sample's deviation is off by 0.2 % (one sigma).
    assert np.std(table) == pytest.approx(64**-0.5, rel=0.01)
    assert abs(np.mean(table)) < 0.01 * 64**-0.5
    assert np.abs(table).max() > 4 * 64**-0.5  # Normal, neither uniform ...
    ids = np.arange(3_000)[None]
    assert np.std(layer(ids)) == pytest.approx(1, rel=0.01)


def test_the_mask_of_logits_is_that_of_their_states():
    layer = TokenEmbedding(V, D)

    masked = layer(layer(IDS), reverse=True)
    plain = layer(random_array(B, T, D), reverse=True)

    np.testing.assert_array_equal(mask_of(masked), IDS != 0)
    assert mask_of(plain) is None


@pytest.mark.parametrize(
    ("hidden_dim", "max_wavelength", "offset"),
    [(1, 10_000, 0), (6, 50.5, 2), (7, 50.5, 0), (512, 10_000, 0)],
)
@pytest.mark.parametrize("start", [0, 3, 700])
def test_sines_and_cosines_alternate(hidden_dim, max_wavelength, offset, start):
    layer = SinePositionEncoding(max_wavelength, offset)
    index = ops.convert_to_tensor(start, "int64") if start == 3 else start

    outputs = layer(np.zeros((B, T, hidden_dim), "float32"), start_index=index)

    positions = range(start + offset, start + offset + T)
    expected = sines(positions, hidden_dim, max_wavelength)
    # float32 has 24 bits: angles up to 700 are off by 700 * 2^-24.
    tolerance = 1e-4 if start == 700 else 1e-6
    np.testing.assert_allclose(outputs, [expected] * B, atol=tolerance)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_positions_are_exact_in_half_precision(dtype):
    # bfloat16 itself knows no integer between 300 and 302, for example.
    layer = SinePositionEncoding(dtype=dtype)

    outputs = layer(random_array(1, 40, D), start_index=301)

    # Rounded once, at the end: by 2^-9 at most for values up to 1.
    outputs = np.array(ops.cast(outputs, "float32"))
    np.testing.assert_allclose(outputs[0], sines(range(301, 341), D), atol=2**-8)


@pytest.mark.parametrize("start_index", [0, 2, 4])
@pytest.mark.parametrize("dtype", [None, "int32", "int64"])
def test_learned_positions_are_rows_from_the_start_on(start_index, dtype):
    layer = PositionEmbedding(9)
    inputs = random_array(B, T, D)
    layer.build(inputs.shape)
    (table,) = layer.get_weights()
    index = start_index
    if dtype is not None:
        index = ops.convert_to_tensor(start_index, dtype)

    outputs = layer(inputs, start_index=index)

    expected = table[start_index : start_index + T]
    np.testing.assert_array_equal(outputs, [expected] * B)


@pytest.mark.parametrize(
    ("cls", "argument"), [(SinePositionEncoding, 50), (PositionEmbedding, T)]
)
def test_masks_pass_through_positions(cls, argument):
    embedded = TokenEmbedding(V, D)(IDS)

    np.testing.assert_array_equal(mask_of(cls(argument)(embedded)), IDS != 0)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64"])
def test_ids_may_be_of_any_int_dtype(dtype):
    layer = TokenEmbedding(9, 4)
    ids = np.array([[7, 5, 0]], dtype)

    np.testing.assert_array_equal(layer(ids), layer(ids.astype("int32")))
