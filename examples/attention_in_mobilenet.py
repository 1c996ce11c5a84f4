"""Adds multi-head attention to a network of `keras.applications`.

A picture shows a small square in each half: are they of one colour? Each
position of a feature map in the middle of MobileNetV2 attends to all others by
`MultiHeadAttention`. Run

    python examples/attention_in_mobilenet.py
    python examples/attention_in_mobilenet.py without

The first classified 99.9 % of 1,000 unseen pictures correctly. The second,
without attention, classified 51.8 %; in a run on another processor, 84 %.
"""

import sys

import keras
import numpy as np

import keras_transformer as kt

SIZE, SQUARE = 64, 8


def make_pictures(number, seed):
    """Returns pictures `(number, 64, 64, 3)` and whether the colours agree."""
    random = np.random.default_rng(seed)
    pictures = random.normal(0, 0.05, (number, SIZE, SIZE, 3))
    colours = np.eye(3)
    labels = random.integers(0, 2, number)
    for picture, label in zip(pictures, labels, strict=True):
        first = random.integers(3)
        second = first if label else (first + random.integers(1, 3)) % 3
        # One in the left half, one in the right half.
        for colour, left in ((first, 0), (second, SIZE // 2)):
            x = left + random.integers(SIZE // 2 - SQUARE)
            y = random.integers(SIZE - SQUARE)
            picture[y : y + SQUARE, x : x + SQUARE] += colours[colour]
    return pictures.astype("float32"), labels


def make_mobilenet_with_attention(attention=True):
    network = keras.applications.MobileNetV2(
        (SIZE, SIZE, 3), alpha=0.35, include_top=False, weights=None
    )
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.9  # 0.999 needs thousands of updates.
    features = network.get_layer("block_6_expand_relu").output  # (B, 8, 8, ·)
    x = keras.layers.Reshape((-1, features.shape[-1]))(features)
    x = keras.layers.Dense(64)(x)
    x = x + kt.PositionEmbedding(x.shape[1])(x)
    if attention:
        x = x + kt.MultiHeadAttention(num_heads=4, key_dim=16)(x, x)
    x = keras.layers.LayerNormalization()(x)
    x = keras.layers.GlobalMaxPooling1D()(kt.FeedForward(128)(x))
    return keras.Model(network.input, keras.layers.Dense(1)(x))


def main(number=8_000, epochs=3, attention=True):
    """Trains, and returns the accuracy on unseen pictures."""
    keras.utils.set_random_seed(0)
    model = make_mobilenet_with_attention(attention)
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
    )
    pictures, labels = make_pictures(number, 0)
    model.fit(pictures, labels, batch_size=64, epochs=epochs, verbose=2)
    _, accuracy = model.evaluate(*make_pictures(1_000, 1), verbose=0)
    return accuracy


if __name__ == "__main__":
    print(f"accuracy: {main(attention='without' not in sys.argv):.1%}")
