"""Losses beside the cross-entropy: SimCut, and guided alignment."""

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class SimCut:
    """Consistency where some tokens are cut off (Gao et al., 2022).

    The loss of a target token becomes `-sum_v q(v) log p(v) + α KL(p || p')`:
    `p'` is the distribution of a second pass, with its own dropout, in which
    the embeddings of some tokens, of source and target, are zeros. The
    gradient flows through both.

    Attributes:
        weight: Float, `α`.
        cutoff: Float in (0, 1), the share of the tokens that are cut off.
    """

    weight: float
    cutoff: float

    def draw(self, ids, seed):
        """Returns which tokens are kept, a bool tensor of the shape of ids."""
        shares = tf.random.stateless_uniform(tf.shape(ids), seed)
        return shares >= self.cutoff


@dataclasses.dataclass(frozen=True)
class GuidedAlignment:
    """Draws attention to given links (Chen et al., 2016).

    The loss of a target token with `n` links gets `-weight / n sum_s log a(s)`
    over its linked source tokens `s`, where `a` is the attention of head 0 of
    the decoder layer `Architecture.alignment_layer`.

    Attributes:
        weight: Float.
    """

    weight: float

    def losses(self, attention, links):
        """Returns the loss of each target token, `(B, T)`.

        Args:
            attention: Float tensor `(B, T, S)`.
            links: Uint8 tensor `(B, T, S)`, 1 for a link.
        """
        links = tf.cast(links, tf.float32)
        # A weight may be 0 where its logarithm is needed.
        logs = tf.math.log(tf.cast(attention, tf.float32) + 1e-6)
        sums = tf.reduce_sum(links * logs, axis=2)
        counts = tf.reduce_sum(links, axis=2)
        return -self.weight * tf.math.divide_no_nan(sums, counts)
