import numpy as np

from keras_transformer import FeedForward
from tests.helpers.oracles.numpy_oracles import random_array


def test_equals_equation_2():
    inputs = random_array(2, 5, 4)
    layer = FeedForward(intermediate_dim=8)
    layer.build(inputs.shape)
    w1, b1, w2, b2 = (random_array(*w.shape) for w in layer.weights)
    layer.set_weights([w1, b1, w2, b2])

    expected = np.maximum(0, inputs @ w1 + b1) @ w2 + b2

    np.testing.assert_allclose(layer(inputs), expected, rtol=1e-5, atol=1e-5)
