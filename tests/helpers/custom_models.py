"""A `Transformer` whose output layer is not the embedding matrix."""

import keras

from keras_transformer import Transformer


class CustomOutputModel(Transformer):
    """Computes the logits by a `Dense` layer."""

    def __init__(self, vocabulary_size, *args, **kwargs):
        super().__init__(vocabulary_size, *args, **kwargs)
        self.head = keras.layers.Dense(vocabulary_size, name="head")

    def build(self, input_shape=None):
        self.head.build((None, self.architecture.hidden_dim))
        super().build(input_shape)

    def compute_logits(self, states):
        return self.head(states)
