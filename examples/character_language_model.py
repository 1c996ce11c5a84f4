"""Trains a decoder-only character language model, which continues a text.

It predicts each byte of a text from those before it: the decoder of the paper
without a memory. Run, on any two texts,

    python examples/character_language_model.py train.txt test.txt "A man"
"""

import pathlib
import sys

import keras
import numpy as np

import keras_transformer as kt

NEWLINE = 10  # The byte before a line and after it.


def make_model(width, num_layers, dropout=0.1):
    architecture = kt.Architecture(
        num_layers,
        hidden_dim=width,
        intermediate_dim=4 * width,
        num_heads=4,
        key_dim=width // 4,
        value_dim=width // 4,
        dropout=dropout,
    )
    return kt.LanguageModel(256, architecture)


def cut(path, length):
    """Returns the bytes of a text in rows of `length + 1`, which overlap."""
    data = np.frombuffer(pathlib.Path(path).read_bytes(), "uint8")
    rows = (len(data) - 1) // length
    starts = length * np.arange(rows)
    return data[starts[:, None] + np.arange(length + 1)].astype("int32")


def train(model, path, length, epochs):
    rows = cut(path, length)
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


def bits_per_byte(model, path, length):
    rows = cut(path, length)
    return model.evaluate(rows[:, :-1], rows[:, 1:], verbose=0) / np.log(2)


def complete(model, prompt, limit=80):
    """Returns the most probable line, byte by byte, that begins so."""
    ids = np.frombuffer(prompt.encode(), "uint8")[None]
    line = model.generate(ids, max_extra_length=limit, bos_id=NEWLINE, eos_id=NEWLINE)
    line = keras.ops.convert_to_numpy(line)[0].astype("uint8").tobytes()
    return line.strip(b"\0\n").decode(errors="replace")


def main(train_path, test_path, prompt, width=128, num_layers=3, length=128, epochs=5):
    """Trains; returns the bits per byte of the test text, and a line."""
    keras.utils.set_random_seed(0)
    model = make_model(width, num_layers)
    train(model, train_path, length, epochs)
    return bits_per_byte(model, test_path, length), complete(model, prompt)


if __name__ == "__main__":
    bits, line = main(*sys.argv[1:4])
    print(f"{bits:.2f} bits per byte")
    print(line)
