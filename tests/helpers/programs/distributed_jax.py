"""Trains data and model parallel on two logical JAX devices, made by `XLA_FLAGS`."""

import jax
import keras
import numpy as np

from keras_transformer import SmoothedCrossentropy
from tests.helpers.keras_workflows import BATCH, as_array, make_model, train


def train_model():
    model = make_model()
    model.compile(keras.optimizers.SGD(0.1), SmoothedCrossentropy())
    loss = train(model, epochs=3)["loss"]
    return model, loss, as_array(model(BATCH))


def make_model_parallel():
    """Splits heads and inner features over the devices."""
    mesh = keras.distribution.DeviceMesh((1, 2), ["batch", "model"])
    layout = keras.distribution.LayoutMap(mesh)
    layout[".*attention/(query|key|value)/kernel"] = (None, "model")
    layout[".*attention/output/kernel"] = ("model", None)
    layout[".*expand/kernel"] = (None, "model")
    layout[".*contract/kernel"] = ("model", None)
    return keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch")


if __name__ == "__main__":
    assert jax.device_count() == 2
    _, expected_loss, expected = train_model()
    for distribution in (keras.distribution.DataParallel(), make_model_parallel()):
        with distribution.scope():
            model, loss, logits = train_model()
        np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
        np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
    kernel = model.encoder.layers[0].attention.query_projection.kernel.value
    assert len(kernel.sharding.device_set) == 2
    assert not kernel.sharding.is_fully_replicated
