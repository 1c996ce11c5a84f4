"""What `fit` tells of itself while it runs."""

import time

import keras
import numpy as np


class Progress(keras.callbacks.Callback):
    """Adds to what `fit` logs: learning rate, skipped updates, speed.

    Args:
        steps: Int, update after which training stops.
    """

    def __init__(self, steps: int):
        super().__init__()
        self._steps = steps
        self._speed = {}

    def on_epoch_begin(self, epoch, logs=None):
        self._speed = {}

    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0:
            self._started = time.monotonic()
            self._first = int(self.model.optimizer.iterations.numpy())
            self._counted = float(self.model.means["loss"].count.numpy())

    def on_train_batch_end(self, batch, logs=None):
        # Validation counts its tokens in the same means, so read them here.
        tokens = float(self.model.means["loss"].count.numpy()) - self._counted
        updates = int(self.model.optimizer.iterations.numpy())
        seconds = time.monotonic() - self._started
        left = (self._steps - updates) / (updates - self._first)
        self._speed = {
            "tokens_per_second": tokens / seconds,
            "minutes_left": left * seconds / 60,
        }
        self._add_to(logs)

    def on_epoch_end(self, epoch, logs=None):
        self._add_to(logs)

    def _add_to(self, logs):
        optimizer = self.model.optimizer
        logs["learning_rate"] = optimizer.learning_rate
        logs["skipped"] = optimizer.skipped
        logs.update(self._speed)
        for name, value in logs.items():
            # Of several workers they come as arrays of one number.
            logs[name] = float(np.ravel(value)[0])
