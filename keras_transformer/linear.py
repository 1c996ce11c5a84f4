"""Dense layer that computes fast with an unknown batch size."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_transformer")
class Linear(keras.layers.Dense):
    """A `keras.layers.Dense` that computes one matrix product.

    Dense contracts tensors of rank 3 by a general product. In a TensorFlow
    graph with an unknown batch size this adds several small operations to each
    step of a search.

    Call arguments:
        inputs: Float tensor `(B, T, D)`, or of any other rank above 1.

    Returns:
        Float tensor `(B, T, units)` in the compute dtype.
    """

    def call(self, inputs, training=None):
        if len(inputs.shape) != 3:
            return super().call(inputs, training=training)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        rows = super().call(rows, training=training)
        return ops.reshape(rows, (*batch_and_length(inputs), self.units))

    def quantize(self, mode=None, type_check=True, config=None):
        # Dense refuses subclasses, which may compute something else.
        return super().quantize(mode, type_check=False, config=config)


def batch_and_length(x):
    """Returns the first two sizes of `x`, with -1 for an unknown batch size."""
    if not x.shape[1]:
        # Unknown, or 0: nothing can be inferred from no elements.
        return ops.shape(x)[:2]
    return -1, x.shape[1]
