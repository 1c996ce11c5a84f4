"""Keras callback that logs learning rate, speed, skipped updates, time left."""

import time

import keras

from train.loop.training_model import READ_EVERY, to_float


class Progress(keras.callbacks.Callback):
    """Adds to what `fit` logs: learning rate, skipped updates, speed.

    They are read at every tenth update and at the last one of an epoch, and
    shown until the next reading. The callback also ends training after the last
    update, which may be within an epoch.
    """

    def __init__(self, steps: int):
        super().__init__()
        self._steps = steps

    def on_epoch_begin(self, epoch, logs=None):
        self._started = time.monotonic()
        self._left = self._steps - int(self.model.optimizer.updates.numpy())

    def on_train_batch_end(self, batch, logs=None):
        updates = batch + 1
        if updates == self._left:
            self.model.stop_training = True
        if batch % READ_EVERY == 0 or updates in (self._left, self.params["steps"]):
            optimizer = self.model.optimizer
            tokens = float(self.model.means["loss"].count.numpy())
            seconds = time.monotonic() - self._started
            self._shown = {
                "learning_rate": to_float(optimizer.learning_rate),
                "skipped": to_float(optimizer.skipped),
                "tokens_per_second": tokens / seconds,
                "minutes_left": (self._left - updates) / updates * seconds / 60,
            }
        logs.update(self._shown)

    def on_epoch_end(self, epoch, logs=None):
        logs.update(self._shown)
        for name, value in logs.items():
            logs[name] = to_float(value)
