"""Training steps of this package, of Keras's layers and of keras-hub's."""

import keras
import tensorflow as tf
from keras import ops

from benchmarks.shared.model_sizes import (
    LABEL_SMOOTHING,
    PADDING_ID,
    Size,
    sine_positions,
)
from keras_transformer import Preset
from train.fit import make_training_model
from train.loop.update_options import PRECISIONS, UpdateOptions

# As `fit` sees a batch of ids, for it knows no shape beforehand.
IDS = tf.TensorSpec((None, None), tf.int32)


class EncoderLayer(keras.layers.Layer):
    """An encoder layer around Keras's `MultiHeadAttention`."""

    def __init__(self, size: Size):
        super().__init__()
        self.attention = make_attention(size)
        self.feed_forward = make_feed_forward(size)
        self.norms = [make_normalization() for _ in range(2)]
        self.dropout = keras.layers.Dropout(size.dropout)

    def call(self, x, padding_mask, training=None):
        mask = padding_mask[:, None, :]
        y = self.attention(x, x, attention_mask=mask)
        x = self.norms[0](x + self.dropout(y, training=training))
        y = self.feed_forward(x)
        return self.norms[1](x + self.dropout(y, training=training))


class DecoderLayer(keras.layers.Layer):
    """A decoder layer around Keras's `MultiHeadAttention`."""

    def __init__(self, size: Size):
        super().__init__()
        self.self_attention = make_attention(size)
        self.memory_attention = make_attention(size)
        self.feed_forward = make_feed_forward(size)
        self.norms = [make_normalization() for _ in range(3)]
        self.dropout = keras.layers.Dropout(size.dropout)

    def call(
        self, x, memory, decoder_padding_mask, encoder_padding_mask, training=None
    ):
        mask = decoder_padding_mask[:, None, :]
        y = self.self_attention(x, x, attention_mask=mask, use_causal_mask=True)
        x = self.norms[0](x + self.dropout(y, training=training))
        mask = encoder_padding_mask[:, None, :]
        y = self.memory_attention(x, memory, attention_mask=mask)
        x = self.norms[1](x + self.dropout(y, training=training))
        y = self.feed_forward(x)
        return self.norms[2](x + self.dropout(y, training=training))


def make_attention(size: Size):
    return keras.layers.MultiHeadAttention(
        size.num_heads, size.hidden_dim // size.num_heads, use_bias=False
    )


def make_feed_forward(size: Size):
    return keras.Sequential(
        [
            keras.layers.Dense(size.intermediate_dim, activation="relu"),
            keras.layers.Dense(size.hidden_dim),
        ]
    )


def make_normalization():
    return keras.layers.LayerNormalization(epsilon=1e-6)


class LayeredModel(keras.Model):
    """Tied embeddings, sines, and two stacks of given layers."""

    def __init__(self, size: Size, encoder_layers: list, decoder_layers: list):
        super().__init__()
        self.embedding = keras.layers.Embedding(
            size.vocabulary_size,
            size.hidden_dim,
            keras.initializers.RandomNormal(stddev=size.hidden_dim**-0.5),
        )
        self.scale = size.hidden_dim**0.5
        self.positions = sine_positions(size.length, size.hidden_dim)
        self.dropout = keras.layers.Dropout(size.dropout)
        self.encoder_layers = encoder_layers
        self.decoder_layers = decoder_layers

    def embed(self, ids, training):
        x = self.embedding(ids) * self.scale
        x = x + ops.cast(self.positions, x.dtype)
        return self.dropout(x, training=training)

    def call(self, inputs, training=None):
        source_ids, target_ids = inputs
        source_mask = ops.not_equal(source_ids, PADDING_ID)
        target_mask = ops.not_equal(target_ids, PADDING_ID)
        x = self.embed(source_ids, training)
        for layer in self.encoder_layers:
            x = layer(x, padding_mask=source_mask, training=training)
        y = self.embed(target_ids, training)
        for layer in self.decoder_layers:
            y = layer(
                y,
                x,
                decoder_padding_mask=target_mask,
                encoder_padding_mask=source_mask,
                training=training,
            )
        table = ops.cast(self.embedding.embeddings, y.dtype)
        logits = ops.matmul(y, ops.transpose(table))
        return ops.cast(logits, "float32")


def smoothed_crossentropy(labels, logits):
    """Keras smooths one-hot labels alone."""
    labels = ops.one_hot(ops.cast(labels, "int32"), logits.shape[-1])
    return keras.losses.categorical_crossentropy(
        labels, logits, from_logits=True, label_smoothing=LABEL_SMOOTHING
    )


def make_package_task(size: Size, precision: str):
    preset = Preset("a size of the benchmark").replace(
        **size.hyperparameters(), label_smoothing=LABEL_SMOOTHING
    )
    settings = UpdateOptions(
        size.rows * size.length, steps_per_epoch=1, precision=precision
    )
    return make_training_model(
        preset,
        size.vocabulary_size,
        size.length,
        settings,
        tf.distribute.get_strategy(),
    )


def make_package_update(size: Size, precision: str):
    names = ("source_ids", "target_ids", "labels")
    batch = dict.fromkeys(names, tf.TensorSpec((1, *IDS.shape), IDS.dtype))
    return compile_update(
        make_package_task(size, precision), {**batch, "num_tokens": tf.TensorSpec(())}
    )


def make_keras_update(size: Size, precision: str):
    return make_layered_update(
        size, precision, lambda: EncoderLayer(size), lambda: DecoderLayer(size)
    )


def make_keras_hub_update(size: Size, precision: str):
    import keras_hub

    arguments = (size.intermediate_dim, size.num_heads, size.dropout)
    return make_layered_update(
        size,
        precision,
        lambda: keras_hub.layers.TransformerEncoder(*arguments),
        lambda: keras_hub.layers.TransformerDecoder(*arguments),
    )


def make_layered_update(size: Size, precision: str, encoder, decoder):
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(PRECISIONS[precision])
    model = LayeredModel(
        size,
        [encoder() for _ in range(size.num_layers)],
        [decoder() for _ in range(size.num_layers)],
    )
    ids = tf.ones((1, size.length), tf.int32)
    model((ids, ids))
    model.compile(
        keras.optimizers.Adam(1e-4, 0.9, 0.98, 1e-9),
        smoothed_crossentropy,
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)
    weights = tf.TensorSpec((None, None))
    return compile_update(model, ((IDS, IDS), IDS, weights))


def compile_update(model, signature):
    """Returns a function that does with a batch what `fit` does with it."""
    step = tf.function(model.train_step, input_signature=[signature])

    def update(batch):
        return float(step(batch)["loss"])

    return update


def prepare_dict(batch: dict) -> dict:
    return {name: tf.constant(value) for name, value in batch.items()}


def prepare_package(batch: dict) -> dict:
    """Makes a batch of one micro-batch."""
    return {
        name: value[None] if value.shape.rank else value
        for name, value in prepare_dict(batch).items()
    }


def prepare_tuples(batch: dict) -> tuple:
    batch = prepare_dict(batch)
    real = tf.cast(batch["labels"] != PADDING_ID, tf.float32)
    inputs = (batch["source_ids"], batch["target_ids"])
    # Keras divides the sum of the losses by the number of positions.
    share = batch["num_tokens"] / tf.size(real, tf.float32)
    return inputs, batch["labels"], real / share


def make_product(width: int, precision: str):
    """Returns a function that multiplies two square matrices."""
    dtype = tf.as_dtype(precision)
    a, b = (tf.cast(tf.random.normal((width, width)), dtype) for _ in range(2))

    def product():
        return float(tf.matmul(a, b)[0, 0])

    return product
