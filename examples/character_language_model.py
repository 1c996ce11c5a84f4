"""Trains a decoder-only character language model.

It predicts each byte of a text from those before it: the decoder of the paper
without a memory. Run, on any two texts,

    python examples/character_language_model.py train.txt test.txt

On the English captions of Multi30k (train, test_2016_flickr): 1.49 bits a byte.
"""

import pathlib
import sys

import keras
import numpy as np

import keras_transformer as kt


def make_model(width, num_layers, dropout=0.1):
    ids = keras.Input((None,), dtype="int32")
    embedding = kt.TokenEmbedding(256, width)
    x = embedding(ids)
    x = x + kt.SinePositionEncoding()(x)
    x = kt.Decoder(
        num_layers, num_heads=4, intermediate_dim=4 * width, dropout=dropout
    )(x)
    return keras.Model(ids, embedding(x, reverse=True))


def cut(path, length):
    """Returns the bytes of a text in rows of `length + 1`, which overlap."""
    data = np.frombuffer(pathlib.Path(path).read_bytes(), "uint8")
    rows = (len(data) - 1) // length
    starts = length * np.arange(rows)
    return data[starts[:, None] + np.arange(length + 1)].astype("int32")


def main(train, test, length=128, width=128, num_layers=3, epochs=5):
    """Trains, and returns the bits a byte that the test text costs."""
    keras.utils.set_random_seed(0)
    model = make_model(width, num_layers)
    rows, test_rows = cut(train, length), cut(test, length)
    updates = epochs * (len(rows) // 32 + 1)
    warmup = updates // 10
    schedule = keras.optimizers.schedules.CosineDecay(
        1e-4, updates - warmup, warmup_target=2e-3, warmup_steps=warmup
    )
    model.compile(
        keras.optimizers.AdamW(schedule),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(rows[:, :-1], rows[:, 1:], epochs=epochs, verbose=2)
    nats = model.evaluate(test_rows[:, :-1], test_rows[:, 1:], verbose=0)
    return nats / np.log(2)


if __name__ == "__main__":
    print(f"{main(*sys.argv[1:3]):.2f} bits a byte")
