"""Random arrays, and what NumPy computes of logits: scores and draws."""

import numpy as np


def random_array(*shape, seed=2017):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def mask_of_lengths(lengths, size):
    return np.arange(size) < np.array(lengths)[:, None]


def log_softmax(logits):
    """Over the last axis, in float64."""
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def softmax(logits):
    return np.exp(log_softmax(logits))


def assert_close(actual, expected, tolerance=1e-5):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance / 10)


def encode(tokenizer, texts):
    """Returns padded ids, each row ended by 1."""
    all_ids = [[*tokenizer.encode(text.decode()), 1] for text in texts]
    return pad(all_ids)


def pad(all_ids):
    longest = max(map(len, all_ids))
    return np.array([ids + [0] * (longest - len(ids)) for ids in all_ids])


def pieces_of(tokenizer, ids):
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


def plain_hash(x):
    """The end of MurmurHash3, in Python's own ints."""
    x = (x ^ x >> 16) * 0x85EBCA6B % 2**32
    x = (x ^ x >> 13) * 0xC2B2AE35 % 2**32
    return x ^ x >> 16


def plain_chances(seed, index):
    key = plain_hash((seed + 0x9E3779B9) % 2**32)
    bits = [plain_hash(key ^ plain_hash(2 * index + i)) for i in (1, 2)]
    return [(b >> 8) / 2**24 for b in bits]


def weights_of(row, allowed, temperature=1.0, top_k=0, top_p=1.0):
    """Returns the probability of each token, and how near a choice was."""
    scaled = np.full(len(row), -np.inf)
    scaled[allowed] = row[allowed] / temperature
    order = np.argsort(-scaled, kind="stable")[: top_k or None]
    weights = np.zeros(len(row))
    weights[order] = np.exp(scaled[order] - scaled.max())
    weights /= weights.sum()
    sums = np.cumsum(weights[order])
    gap = np.abs(sums - top_p).min() if top_p < 1 else np.inf
    kept = order if top_p >= 1 else order[sums - weights[order] < top_p]
    cut = np.where(np.isin(np.arange(len(row)), kept), weights, 0)
    return cut / cut.sum(), gap


def draw(row, allowed, seed, index, *cuts):
    """Draws a token of logits `(V,)`; returns how near it was to another, too."""
    weights, near = weights_of(row, allowed, *cuts)
    blocks = [weights[i : i + 256] for i in range(0, len(weights), 256)]
    first, second = plain_chances(seed, index)
    block, gap = draw_place(np.array([b.sum() for b in blocks]), first)
    place, other_gap = draw_place(blocks[block], second)
    return 256 * block + place, min(near, gap, other_gap)


def draw_place(weights, chance):
    sums = np.cumsum(weights)
    is_beyond = (sums > chance * sums[-1]) & (weights > 0)
    return int(np.argmax(is_beyond)), np.abs(sums / sums[-1] - chance).min()
