"""Training of this package, of Keras's layers and of keras-hub's."""

import keras
import tensorflow as tf
from keras import ops

from benchmarks.model_sizes import LABEL_SMOOTHING, PADDING_ID, Size
from benchmarks.training.random_batches import sine_positions
from keras_transformer import Preset
from train.fit import make_training_model
from train.loop.update_options import PRECISIONS, UpdateOptions

# As `fit` sees a batch of ids, for it knows no shape beforehand.
IDS = tf.TensorSpec((None, None), tf.int32)


class SubLayers(keras.layers.Layer):
    """Post-norm sub-layers around Keras's `MultiHeadAttention`."""

    def __init__(self, size: Size, num_attentions: int):
        super().__init__()
        self.attentions = [
            keras.layers.MultiHeadAttention(
                size.num_heads, size.hidden_dim // size.num_heads, use_bias=False
            )
            for _ in range(num_attentions)
        ]
        self.feed_forward = keras.Sequential(
            [
                keras.layers.Dense(size.intermediate_dim, activation="relu"),
                keras.layers.Dense(size.hidden_dim),
            ]
        )
        self.norms = [
            keras.layers.LayerNormalization(epsilon=1e-6)
            for _ in range(num_attentions + 1)
        ]
        self.dropout = keras.layers.Dropout(size.dropout)

    def attend(self, number, x, memory, mask, training, **options):
        y = self.attentions[number](
            x, memory, attention_mask=mask[:, None, :], **options
        )
        return self.norms[number](x + self.dropout(y, training=training))

    def feed(self, x, training):
        y = self.feed_forward(x)
        return self.norms[-1](x + self.dropout(y, training=training))


class EncoderLayer(SubLayers):
    def call(self, x, padding_mask, training=None):
        return self.feed(self.attend(0, x, x, padding_mask, training), training)


class DecoderLayer(SubLayers):
    def call(
        self, x, memory, decoder_padding_mask, encoder_padding_mask, training=None
    ):
        x = self.attend(0, x, x, decoder_padding_mask, training, use_causal_mask=True)
        x = self.attend(1, x, memory, encoder_padding_mask, training)
        return self.feed(x, training)


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


def load_package(size: Size, precision: str):
    preset = Preset("a size of the benchmark").replace(
        **size.hyperparameters(), label_smoothing=LABEL_SMOOTHING
    )
    settings = UpdateOptions(
        size.rows * size.length, steps_per_epoch=1, precision=precision
    )
    strategy = tf.distribute.get_strategy()
    model = make_training_model(
        preset, size.vocabulary_size, size.length, settings, strategy
    )
    names = ("source_ids", "target_ids", "labels")
    batch = dict.fromkeys(names, tf.TensorSpec((1, *IDS.shape), IDS.dtype))

    def prepare(batch):  # Of one micro-batch.
        return {
            name: tf.constant(value[None] if value.ndim else value)
            for name, value in batch.items()
        }

    return prepare, compile_update(model, {**batch, "num_tokens": tf.TensorSpec(())})


def load_keras(size: Size, precision: str):
    return load_layers(
        size, precision, lambda: EncoderLayer(size, 1), lambda: DecoderLayer(size, 2)
    )


def load_keras_hub(size: Size, precision: str):
    from keras_hub import layers

    sizes = (size.intermediate_dim, size.num_heads, size.dropout)
    return load_layers(
        size,
        precision,
        lambda: layers.TransformerEncoder(*sizes),
        lambda: layers.TransformerDecoder(*sizes),
    )


def load_layers(size: Size, precision: str, encoder, decoder):
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(PRECISIONS[precision])
    layers = [[make() for _ in range(size.num_layers)] for make in (encoder, decoder)]
    model = LayeredModel(size, *layers)
    ids = tf.ones((1, size.length), tf.int32)
    model((ids, ids))
    model.compile(
        keras.optimizers.Adam(1e-4, 0.9, 0.98, 1e-9),
        smoothed_crossentropy,
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)

    def prepare(batch):
        batch = {name: tf.constant(value) for name, value in batch.items()}
        real = tf.cast(batch["labels"] != PADDING_ID, tf.float32)
        inputs = (batch["source_ids"], batch["target_ids"])
        # Keras divides the sum of the losses by the number of positions.
        share = batch["num_tokens"] / tf.size(real, tf.float32)
        return inputs, batch["labels"], real / share

    signature = ((IDS, IDS), IDS, tf.TensorSpec((None, None)))
    return prepare, compile_update(model, signature)


def compile_update(model, signature):
    """Returns a function that does with a batch what `fit` does, some times."""
    step = tf.function(model.train_step, input_signature=[signature])

    def update(batch, steps):
        return [float(step(batch)["loss"]) for _ in range(steps)][-1]

    return update


def make_product(width: int, precision: str):
    """Returns a function that multiplies two square matrices, some times."""
    dtype = tf.as_dtype(precision)
    a, b = (tf.cast(tf.random.normal((width, width)), dtype) for _ in range(2))
    return lambda times: [float(tf.matmul(a, b)[0, 0]) for _ in range(times)][-1]
