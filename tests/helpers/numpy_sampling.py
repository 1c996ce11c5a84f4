"""Reference sampling in NumPy, with its own hash in Python ints."""

import numpy as np


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
    """Draws a token of logits `(V,)`, and returns how near it was to another.

    `cuts` are temperature, `top_k` and `top_p`.
    """
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
