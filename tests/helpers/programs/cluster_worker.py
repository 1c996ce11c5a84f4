"""Worker process of `tests/train/loop/test_multi_worker.py`."""

import sys

import numpy as np

from tests.helpers.small_runs import make_training_pairs, weights_after_twenty_updates
from train.fit import make_strategy
from train.loop import multi_worker


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
    if multi_worker.is_chief():
        np.savez(sys.argv[1], **result)


if __name__ == "__main__":
    main()
