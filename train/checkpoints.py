"""The mean of the last checkpoints (Section 6.1)."""

import numpy as np

from keras_transformer import Transformer
from train.run_state import RunState


def average_checkpoints(transformer: Transformer, state: RunState):
    """Returns a float32 Transformer with the mean of the kept weights.

    The sum runs in float64. The weights of `transformer` are left as those of
    the last checkpoint.

    Args:
        transformer: The model that `state` restores.
        state: The state of the run, with a checkpoint at least.
    """
    sums = None
    for path in state.checkpoints:
        state.restore(path)
        weights = [np.asarray(w, np.float64) for w in transformer.get_weights()]
        sums = (
            weights
            if sums is None
            else [total + w for total, w in zip(sums, weights, strict=True)]
        )
    config = {**transformer.get_config(), "dtype": "float32"}
    averaged = Transformer.from_config(config)
    averaged.build()
    averaged.set_weights([total / len(state.checkpoints) for total in sums])
    return averaged
