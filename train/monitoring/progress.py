"""Keras callback that logs learning rate, speed, skipped updates, time left."""

import time

import keras

from train.loop.training_model import to_float

READ_EVERY = 10


class Progress(keras.callbacks.Callback):
    """Adds to what `fit` logs: learning rate, skipped updates, speed.

    Reading a metric waits for the device, so metrics are read after every
    tenth update and the last one of an epoch, and shown until the next reading.

    Args:
        steps: Int, update after which training stops.
    """

    def __init__(self, steps: int):
        super().__init__()
        self._steps = steps
        self._speed = {}
        self._shown = {}

    def on_epoch_begin(self, epoch, logs=None):
        self._speed = {}

    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0:
            self._started = time.monotonic()
            self._first = int(self.model.optimizer.iterations.numpy())
            self._counted = float(self.model.means["loss"].count.numpy())
        last = batch + 1 == self.params["steps"]
        self.model.reads_metrics = batch % READ_EVERY == 0 or last

    def on_train_batch_end(self, batch, logs=None):
        if self.model.reads_metrics:
            self._read_speed(batch + 1)
            self._shown = self._read()
        logs.update(self._shown)

    def on_epoch_end(self, epoch, logs=None):
        logs.update(self._read())
        for name, value in logs.items():
            logs[name] = to_float(value)

    def _read_speed(self, updates):
        # Validation uses the same metrics, so read them before it starts.
        tokens = float(self.model.means["loss"].count.numpy()) - self._counted
        seconds = time.monotonic() - self._started
        left = (self._steps - self._first - updates) / updates
        self._speed = {
            "tokens_per_second": tokens / seconds,
            "minutes_left": left * seconds / 60,
        }

    def _read(self):
        optimizer = self.model.optimizer
        return {
            "learning_rate": to_float(optimizer.learning_rate),
            "skipped": to_float(optimizer.skipped),
            **self._speed,
        }
