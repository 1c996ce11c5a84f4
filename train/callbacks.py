"""What happens beside the updates: figures, checkpoints, history."""

import csv
import io
import math
import pathlib
import time

import keras
import tensorflow as tf

from keras_transformer.errors import UserError
from train.run_folder import write_atomically


class Progress(keras.callbacks.Callback):
    """Adds learning rate and target tokens a second to what `fit` logs."""

    def on_epoch_begin(self, epoch, logs=None):
        self._started = time.monotonic()
        self._rate = 0.0

    def on_train_batch_end(self, batch, logs=None):
        seconds = time.monotonic() - self._started
        # Validation counts its tokens in the same means, so read them here.
        tokens = float(self.model.means["loss"].count.numpy())
        self._rate = tokens / seconds
        self._add_to(logs)

    def on_epoch_end(self, epoch, logs=None):
        self._add_to(logs)

    def _add_to(self, logs):
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)
        logs["tokens_per_second"] = self._rate


class RunState(keras.callbacks.Callback):
    """Writes a checkpoint and a line of `history.csv` after each round.

    A checkpoint holds weights, optimizer and the state of dropout's random
    numbers, so that a run that continues is the run that never stopped.

    Args:
        task: The compiled `TeacherForcing`.
        run_dir: Folder of the run.
        steps: Int, update after which training stops.
        keep: Int, how many of the latest checkpoints stay.
    """

    def __init__(self, task, run_dir: pathlib.Path, steps: int, keep: int):
        super().__init__()
        self._task = task
        self._steps = steps
        self._history = run_dir / "history.csv"
        self._rows = []
        self._checkpoint = tf.train.Checkpoint(
            model=task.transformer,
            optimizer=task.optimizer,
            random=[
                variable.value
                for variable in task.transformer.variables
                if "seed_generator" in variable.path
            ],
        )
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, run_dir / "checkpoints", max_to_keep=keep
        )

    @property
    def updates(self) -> int:
        """Updates of the weights made so far."""
        return int(self._task.optimizer.iterations.numpy())

    @property
    def checkpoints(self) -> list[str]:
        """Prefixes of the checkpoints that are kept, oldest first."""
        return list(self._manager.checkpoints)

    @property
    def history(self) -> list[dict]:
        """The rounds so far, as rows of `history.csv`."""
        return list(self._rows)

    def restore(self, path: str | None = None) -> int:
        """Loads a checkpoint, the latest by default.

        Returns:
            The number of updates made; 0 where there is no checkpoint.
        """
        path = path or self._manager.latest_checkpoint
        if path is None:
            return 0
        self._checkpoint.restore(path).assert_consumed()
        if self._history.exists():
            with self._history.open(newline="") as file:
                rows = list(csv.DictReader(file))
            self._rows = [r for r in rows if int(r["step"]) <= self.updates]
        return self.updates

    def on_train_batch_end(self, batch, logs=None):
        if self.updates >= self._steps:
            self._task.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        if not math.isfinite(logs["loss"]):
            raise UserError(
                f"the loss is {logs['loss']} at update {self.updates}: the "
                "training diverged. Its last good checkpoint is kept; try a "
                "lower --learning-rate-scale or more --warmup-steps in a new "
                "--run-dir"
            )
        self._manager.save(self.updates)
        self._rows.append({"step": self.updates, **logs})
        text = io.StringIO()
        # A round may lack a column, such as that of BLEU.
        columns = dict.fromkeys(name for row in self._rows for name in row)
        writer = csv.DictWriter(text, columns)
        writer.writeheader()
        writer.writerows(self._rows)
        write_atomically(self._history, text.getvalue().encode())
