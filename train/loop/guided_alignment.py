"""Loss of attention to given links, beside the cross-entropy."""

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class GuidedAlignment:
    """Draws attention to given links (Chen et al., 2016).

    The loss of a target token with `n` links gets `-weight / n sum_s log a(s)`
    over its linked source tokens `s`, where `a` is the attention of head 0 of
    the decoder layer `Architecture.alignment_layer`.
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
