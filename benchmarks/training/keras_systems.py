"""Training of this package, and of a model of keras-hub's layers."""

import keras
import tensorflow as tf
from keras import ops

from benchmarks.constants import LABEL_SMOOTHING, PADDING_ID, Size
from keras_transformer import Preset
from train.fit import make_training_model
from train.loop.training_options import PRECISIONS, TrainingOptions

# As `fit` sees a batch of ids, for it knows no shape beforehand.
IDS = tf.TensorSpec((None, None), tf.int32)


def smoothed_crossentropy(labels, logits):
    """Keras smooths one-hot labels alone."""
    labels = ops.one_hot(ops.cast(labels, "int32"), logits.shape[-1])
    return keras.losses.categorical_crossentropy(
        labels, logits, from_logits=True, label_smoothing=LABEL_SMOOTHING
    )


def load_package(size: Size, precision: str):
    """Returns functions that prepare a batch, and train on it some times."""
    preset = Preset("a size of the benchmark").replace(
        **size.hyperparameters(), label_smoothing=LABEL_SMOOTHING
    )
    settings = TrainingOptions(
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


def load_keras_hub(size: Size, precision: str):
    """Returns the same for tied embeddings, sines and layers of keras-hub."""
    from keras_hub import layers

    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(PRECISIONS[precision])
    embedding = layers.ReversibleEmbedding(
        size.vocabulary_size,
        size.hidden_dim,
        embeddings_initializer=keras.initializers.RandomNormal(
            stddev=size.hidden_dim**-0.5
        ),
    )
    positions, dropout = (
        layers.SinePositionEncoding(),
        keras.layers.Dropout(size.dropout),
    )

    def embed(ids):
        x = embedding(ids) * size.hidden_dim**0.5
        return dropout(x + positions(x))

    ids = [keras.Input((None,), dtype="int32") for _ in range(2)]
    source_mask, target_mask = (ops.not_equal(side, PADDING_ID) for side in ids)
    x, y = map(embed, ids)
    sizes = (size.intermediate_dim, size.num_heads, size.dropout)
    for _ in range(size.num_layers):
        x = layers.TransformerEncoder(*sizes)(x, padding_mask=source_mask)
    for _ in range(size.num_layers):
        y = layers.TransformerDecoder(*sizes)(
            y, x, decoder_padding_mask=target_mask, encoder_padding_mask=source_mask
        )
    logits = ops.cast(embedding(y, reverse=True), "float32")
    model = keras.Model(ids, logits)
    model.compile(
        keras.optimizers.Adam(1e-4, 0.9, 0.98, 1e-9),
        smoothed_crossentropy,
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)

    def prepare(batch):
        batch = {name: tf.constant(value) for name, value in batch.items()}
        real = tf.cast(batch["labels"] != PADDING_ID, tf.float32)
        inputs = [batch["source_ids"], batch["target_ids"]]
        # Keras divides the sum of the losses by the number of positions.
        share = batch["num_tokens"] / tf.size(real, tf.float32)
        return inputs, batch["labels"], real / share

    signature = ([IDS, IDS], IDS, tf.TensorSpec((None, None)))
    return prepare, compile_update(model, signature)


def compile_update(model, signature):
    """Returns a function that does with a batch what `fit` does, some times."""
    step = tf.function(model.train_step, input_signature=[signature])

    def update(batch, steps):
        return [float(step(batch)["loss"]) for _ in range(steps)][-1]

    return update
