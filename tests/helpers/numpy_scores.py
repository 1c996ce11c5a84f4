"""Computes log-probabilities from logits in NumPy."""

import numpy as np

from tests.helpers.arrays import log_softmax


def encode(tokenizer, texts):
    """Returns padded ids, each row ended by 1."""
    all_ids = [[*tokenizer.encode(text.decode()), 1] for text in texts]
    return pad(all_ids)


def pad(all_ids):
    longest = max(map(len, all_ids))
    return np.array([ids + [0] * (longest - len(ids)) for ids in all_ids])


def pieces_of(tokenizer, ids):
    """Returns the pieces of padded ids, as bytes; padding has none."""
    return [
        [tokenizer.id_to_piece(int(i)).encode() if i else b"" for i in row]
        for row in ids
    ]


def target_log_probabilities(model, source_ids, target_ids):
    """Returns the log-probability of each token, `(B, T)`, from the logits."""
    shifted = np.pad(target_ids, [[0, 0], [1, 0]], constant_values=3)[:, :-1]
    shifted[target_ids == 0] = 0
    logits = model({"source_ids": source_ids, "target_ids": shifted})
    found = log_softmax(logits)
    found = np.take_along_axis(found, target_ids[:, :, None], axis=2)[..., 0]
    return np.where(target_ids > 0, found, 0.0)
