"""Callback that writes checkpoints and history, and resumes from them."""

import csv
import io
import pathlib
import signal
import time

import keras
import numpy as np
import tensorflow as tf

from command_line.errors import UserError
from command_line.text_files import write_atomically
from train.loop import multi_worker
from train.loop.training_model import transformer_of
from train.run.checkpoint_store import CheckpointStore, read_metrics
from train.run.run_folder import read_history, saved_steps

MAX_SKIPPED = 10


class TrainingState(keras.callbacks.Callback):
    """Writes a checkpoint and a row of `history.csv` for each epoch.

    A checkpoint (`CheckpointStore`) holds weights, optimizer, the state of
    dropout's random numbers and the metrics of the epoch so far, so that a
    resumed run equals an uninterrupted one, wherever it stopped. The checkpoint
    of a complete epoch is written before validation, and its row after it. So a
    checkpoint without a row belongs to an interrupted epoch.

    Args:
        training_model: A built and compiled `TrainingModel` or `Transformer`,
            with any Keras optimizer.
        run_dir: Folder of the run.
        keep: Int, number of the latest checkpoints to keep.
        signals: List to which a signal handler adds; after the current update
            the run is then saved and ends.

    Raises:
        ValueError: In `fit`, if that gets neither `steps_per_epoch` nor data of
            known length.
    """

    def __init__(
        self,
        training_model,
        run_dir: pathlib.Path,
        keep: int,
        signals: list[int] | None = None,
    ):
        super().__init__()
        self._training_model = training_model
        self._strategy = tf.distribute.get_strategy()
        self._keep = keep
        # Function that returns the steps of other checkpoints to keep.
        self.checkpoints_to_keep = set
        self._signals = [] if signals is None else signals
        self._history = run_dir / "history.csv"
        self._folder = run_dir / "checkpoints"
        self._rows = []
        self._means = None
        self._states = CheckpointStore(training_model, self._folder)

    @property
    def updates(self) -> int:
        """Updates made so far."""
        return int(self._training_model.optimizer.iterations.numpy())

    @property
    def within_epoch(self) -> bool:
        """Whether the restored checkpoint belongs to an interrupted epoch."""
        return self._means is not None

    @property
    def checkpoints(self) -> list[str]:
        """Prefixes of the latest checkpoints of epochs, oldest first."""
        saved = saved_steps(self._folder)
        ends = [int(row["step"]) for row in self._rows]
        kept = [str(saved[step]) for step in ends if step in saved]
        return kept[-self._keep :]

    @property
    def history(self) -> list[dict]:
        """The epochs so far, as rows of `history.csv`."""
        return list(self._rows)

    def restore(self) -> int:
        """Loads the latest undamaged checkpoint.

        Returns:
            The number of updates made; 0 if there is no checkpoint.

        Raises:
            UserError: If there are checkpoints, but none is usable.
        """
        found = self._states.read_latest()
        if found is None:
            return 0
        self._resume_history(found)
        return self.updates

    def _resume_history(self, prefix):
        rows = read_history(self._history.parent)
        self._rows = [r for r in rows if int(r["step"]) <= self.updates]
        ended = self._rows and int(self._rows[-1]["step"]) == self.updates
        if not ended:  # `fit` resets the metrics when it begins the epoch.
            count = len(self._training_model.metrics_variables)
            self._means = read_metrics(prefix, count)

    def share(self, strategy: tf.distribute.Strategy) -> int:
        """Sends the chief's state to all workers; returns its updates."""
        variables = [
            *transformer_of(self._training_model).variables,
            *self._training_model.optimizer.variables,
        ]
        arrays = [np.array(variable) for variable in variables]
        # The collective sum does not support unsigned integers.
        arrays = [
            array.astype(np.int64) if array.dtype.kind == "u" else array
            for array in arrays
        ]
        means = self._means or [0.0] * len(self._training_model.metrics_variables)
        inside = np.array([self._means is not None, *means], np.float64)
        inside, *values = multi_worker.broadcast(strategy, [inside, *arrays])
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        if inside[0]:
            self._means = list(inside[1:].astype(np.float32))
        return self.updates

    def restore_metrics(self) -> None:
        """Restores the metrics of an interrupted epoch."""
        if self._means is not None:
            for variable, value in zip(
                self._training_model.metrics_variables, self._means, strict=True
            ):
                variable.assign(value)
            self._means = None

    def on_epoch_begin(self, epoch, logs=None):
        if self.params["steps"] is None:
            raise ValueError(
                "`fit` must know the number of batches in an epoch, since it "
                "would count one update too many. Received: "
                "steps_per_epoch=None, and data of unknown length"
            )
        ended = self.updates == epoch * self.params["steps"]
        lacks_row = self.within_epoch and ended
        self.restore_metrics()
        if lacks_row:
            self._add_missing_row()

    def _add_missing_row(self):
        """Adds the row of an epoch that was interrupted in its validation."""
        try:
            results = self._training_model.get_metrics_result()
        except ValueError:  # Keras makes a user's metrics in the first batch.
            results = {
                metric.name: metric.result()
                for metric in self._training_model.metrics
                if isinstance(metric, keras.metrics.Mean)
            }
        means = {name: float(value) for name, value in results.items()}
        self._rows.append({"step": self.updates, **means})
        self._training_model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        reads = getattr(self._training_model, "reads_metrics", True)
        if reads:
            self._refuse_divergence()
        epoch_ends = batch + 1 == self.params["steps"]
        # Communication waits for the device. Read the list only once, since a
        # signal may come meanwhile.
        asks = reads or not multi_worker.is_multi_worker()
        interrupted = asks and self._interrupted()
        if epoch_ends or interrupted:
            # On all workers: the metrics in it are sums over these.
            self._states.write(self.updates)
        if interrupted:
            self._exit()

    def _refuse_divergence(self):
        counter = getattr(self._training_model.optimizer, "skipped_in_a_row", 0)
        skipped = int(np.array(counter))
        if skipped >= MAX_SKIPPED:
            raise UserError(
                f"the training diverged: {skipped} updates in a row, up to "
                f"{self.updates}, had a gradient that was not finite. The last "
                "good checkpoint is kept; try a lower --learning-rate-scale, "
                "more --warmup-steps or --clip-norm 1 in a new --run-dir"
            )

    def on_test_batch_end(self, batch, logs=None):
        self.exit_if_interrupted()

    def on_epoch_end(self, epoch, logs=None):
        self._rows.append({"step": self.updates, **logs})
        names = dict.fromkeys(name for row in self._rows for name in row)
        text = io.StringIO()
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(self._rows)
        write_atomically(self._history, text.getvalue().encode())
        pinned = {str(self._folder / f"ckpt-{n}") for n in self.checkpoints_to_keep()}
        self._states.delete_old({*self.checkpoints, *pinned})
        self.exit_if_interrupted()

    def exit_if_interrupted(self) -> None:
        """Saves the run and exits if any worker received a signal."""
        if self._interrupted():
            self._exit()

    def _interrupted(self):
        return multi_worker.any_worker(self._strategy, bool(self._signals))

    def _exit(self):
        saved = max(saved_steps(self._folder), default=0)
        print(
            f"interrupted at update {self.updates:,}. The same command resumes "
            f"after update {saved:,}",
            flush=True,
        )
        if multi_worker.is_multi_worker():
            # All workers have saved, but may still read from this one.
            multi_worker.any_worker(self._strategy, True)
            time.sleep(1)
        # End also if only another worker received the signal.
        raise SystemExit(128 + (self._signals or [signal.SIGTERM])[0])
