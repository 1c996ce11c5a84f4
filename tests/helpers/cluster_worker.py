"""A worker of `tests/train/loop/test_cluster.py`; `TF_CONFIG` says which."""

import sys

import numpy as np

from tests.helpers.small_tasks import make_training_pairs
from tests.helpers.small_tasks import weights_after_twenty_updates
from train.fit import make_strategy
from train.loop import cluster


def main() -> None:
    strategy = make_strategy(None)
    result = {}
    for name, adam in (("sgd", False), ("adam", True)):
        weights, figures = weights_after_twenty_updates(
            make_training_pairs(), adam, strategy
        )
        for i, array in enumerate(weights):
            result[f"{name}-{i}"] = array
        for figure, value in figures.items():
            result[f"{name}-{figure}"] = value
    if cluster.is_chief():
        np.savez(sys.argv[1], **result)


if __name__ == "__main__":
    main()
