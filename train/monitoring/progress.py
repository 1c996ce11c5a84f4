"""Keras callbacks that log, print and draw the progress of a run."""

import pathlib
import shutil
import sys
import time

import keras
import tensorflow as tf

from train.loop.training_model import READ_EVERY, to_float, updates_of

# What the progress line shows of the logs, and how. 80 columns hold all but speed.
SHOWN = {
    "minutes_left": "{:,.0f} min left",
    "loss": "loss {:.3f}",
    "perplexity": "perplexity {:.4g}",
    "accuracy": "accuracy {:.1%}",
    "tokens_per_second": "{:,.0f} tokens/s",
    "val_loss": "validation loss {:.3f}",
    "val_perplexity": "perplexity {:.4g}",
    "val_accuracy": "accuracy {:.1%}",
    "bleu": "BLEU {:.2f}",
    "chrf": "chrF {:.2f}",
}
OF_VALIDATION = ("val_", "bleu", "chrf")


class ProgressLogger(keras.callbacks.Callback):
    """Adds to what `fit` logs: learning rate, skipped updates, speed, time left.

    They are read at every tenth update and at the last one of an epoch. The
    callback also ends training after the last update, which may be within an
    epoch.
    """

    def __init__(self, steps: int):
        super().__init__()
        self._steps = steps

    def on_epoch_begin(self, epoch, logs=None):
        self._started = time.monotonic()
        self._left = self._steps - updates_of(self.model)

    def on_train_batch_end(self, batch, logs=None):
        updates = batch + 1
        if updates == self._left:
            self.model.stop_training = True
        if batch % READ_EVERY == 0 or updates in (self._left, self.params["steps"]):
            optimizer = self.model.optimizer
            tokens = float(self.model.means["loss"].count.numpy())
            seconds = time.monotonic() - self._started
            self._read = {
                "learning_rate": to_float(optimizer.learning_rate),
                "skipped": to_float(optimizer.skipped),
                "tokens_per_second": tokens / seconds,
                "minutes_left": (self._left - updates) / updates * seconds / 60,
            }
            logs.update(self._read)

    def on_epoch_end(self, epoch, logs=None):
        logs.update(self._read)
        for name, value in logs.items():
            logs[name] = to_float(value)


class ProgressLine(keras.callbacks.Callback):
    """Prints a line for each epoch; on a terminal, also during the epoch.

    It stands after `ProgressLogger`, and after the callbacks whose values it shows.
    """

    def __init__(self, steps: int):
        super().__init__()
        self._steps = steps

    def on_train_batch_end(self, batch, logs=None):
        if batch % READ_EVERY == 0 and sys.stdout.isatty():
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{self._describe(logs)[:width]}", end="", flush=True)

    def on_epoch_end(self, epoch, logs=None):
        if sys.stdout.isatty():
            print("\r\x1b[K", end="")  # Erases the line.
        print(self._describe(logs))

    def _describe(self, logs):
        figures = [
            form.format(to_float(logs[name]))
            for name, form in SHOWN.items()
            if name in logs
        ]
        updates = f"{updates_of(self.model):,}/{self._steps:,} updates"
        return ", ".join([updates, *figures])


class TensorBoardCurves(keras.callbacks.Callback):
    """Writes the logs of each epoch for TensorBoard, over the updates.

    Args:
        log_dir: Folder; it gets `train/` and `validation/`.
    """

    def __init__(self, log_dir: pathlib.Path):
        super().__init__()
        self._writers = {
            name: tf.summary.create_file_writer(str(log_dir / name), flush_millis=0)
            for name in ("train", "validation")
        }

    def on_epoch_end(self, epoch, logs=None):
        for name, value in logs.items():
            kind = "validation" if name.startswith(OF_VALIDATION) else "train"
            with self._writers[kind].as_default(updates_of(self.model)):
                tf.summary.scalar(name.removeprefix("val_"), value)
