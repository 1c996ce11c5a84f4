"""Callback that writes checkpoints and history, and resumes from them.

Files are written atomically, and the latest undamaged checkpoint is read.
"""

import csv
import io
import pathlib

import keras
import numpy as np
import tensorflow as tf

from command_line.errors import UserError, first_line
from command_line.text_files import write_atomically
from train.loop import multi_worker
from train.loop.training_model import (
    READ_EVERY,
    seed_states,
    transformer_of,
    updates_of,
)
from train.run.run_folder import (
    checkpoints_by_step,
    delete_checkpoint,
    read_history,
    step_of,
)

MAX_SKIPPED = 10
# Number of the latest checkpoints that keep their state.
NUM_STATES_KEPT = 2


class TrainingState(keras.callbacks.Callback):
    """Writes a row of `history.csv` and a checkpoint at the end of each epoch.

    A checkpoint (`CheckpointStore`) holds weights, optimizer and the state of
    dropout's random numbers, so that a run that resumes at the end of an epoch
    equals an uninterrupted one. The row comes first: a row without a checkpoint
    belongs to an epoch that is trained again.

    Args:
        training_model: A built and compiled `TrainingModel` or `Transformer`,
            with any Keras optimizer.
        run_dir: Folder of the run.
        keep: Int, number of the latest checkpoints that `checkpoints` returns.

    Raises:
        ValueError: In `fit`, if that gets neither `steps_per_epoch` nor data of
            known length.
    """

    def __init__(self, training_model, run_dir: pathlib.Path, keep: int):
        super().__init__()
        self._training_model = training_model
        self.keep = keep
        # Function that returns the steps of other checkpoints to keep.
        self.checkpoints_to_keep = set
        run_dir.mkdir(parents=True, exist_ok=True)
        self._history = run_dir / "history.csv"
        self._folder = run_dir / "checkpoints"
        self._states = CheckpointStore(training_model, self._folder)
        self.history = []  # The epochs so far, as rows of `history.csv`.

    @property
    def updates(self) -> int:
        """Updates made so far, skipped ones included."""
        return updates_of(self._training_model)

    @property
    def checkpoints(self) -> list[str]:
        """Prefixes of the latest checkpoints, oldest first."""
        saved = self.saved
        steps = [int(row["step"]) for row in self.history]
        return [str(saved[step]) for step in steps if step in saved][-self.keep :]

    @property
    def saved(self) -> dict[int, pathlib.Path]:
        """Prefixes of the checkpoints that are there, by step, ascending."""
        return checkpoints_by_step(self._folder)

    def restore(self, strategy: tf.distribute.Strategy | None = None) -> int:
        """Loads the latest undamaged checkpoint.

        Args:
            strategy: That of all workers, if there are several; these get the
                state of the chief.

        Returns:
            The number of updates made; 0 if there is no checkpoint.

        Raises:
            UserError: If there are checkpoints, but none is usable.
        """
        if self._states.read_latest():
            rows = read_history(self._history.parent)
            self.history = [row for row in rows if int(row["step"]) <= self.updates]
        if multi_worker.is_multi_worker():
            self._share(strategy)
        if self.updates:
            print(f"continuing after update {self.updates:,}")
        return self.updates

    def _share(self, strategy):
        """Sends the chief's state to all workers."""
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
        values = multi_worker.broadcast(strategy, arrays)
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def on_epoch_begin(self, epoch, logs=None):
        if self.params["steps"] is None:
            raise ValueError(
                "`fit` must know the number of batches in an epoch, since it "
                "would count one update too many. Received: "
                "steps_per_epoch=None, and data of unknown length"
            )

    def on_train_batch_end(self, batch, logs=None):
        if batch % READ_EVERY and batch + 1 != self.params["steps"]:
            return
        counter = getattr(self._training_model.optimizer, "skipped_in_a_row", 0)
        skipped = int(np.array(counter))
        if skipped >= MAX_SKIPPED:
            raise UserError(
                f"the training diverged: {skipped} updates in a row, up to "
                f"{self.updates}, had a gradient that was not finite. The last "
                "good checkpoint is kept; try a lower --learning-rate-scale, "
                "more --warmup-steps or --clip-norm 1 in a new --run-dir"
            )

    def on_epoch_end(self, epoch, logs=None):
        self.history.append({"step": self.updates, **logs})
        names = dict.fromkeys(name for row in self.history for name in row)
        text = io.StringIO()
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(self.history)
        write_atomically(self._history, text.getvalue().encode())
        self._states.write(self.updates)
        # The last checkpoint may be damaged, or may end a short epoch. Later ones
        # were not whole when this run resumed.
        kept = [step for step in self.saved if step <= self.updates][-2:]
        kept += [step_of(prefix) for prefix in self.checkpoints]
        kept = {f"ckpt-{step}" for step in (*kept, *self.checkpoints_to_keep())}
        self._states.delete_others(kept)


class CheckpointStore:
    """Writes and reads checkpoints, each of which is two files.

    `ckpt-N` holds the weights. `state-N`, which only the last two keep, holds
    the optimizer and the state of dropout's random numbers.
    """

    def __init__(self, training_model, folder: pathlib.Path):
        self._folder = folder
        optimizer = training_model.optimizer
        if not optimizer.built:
            optimizer.build(training_model.trainable_variables)
        random = [v.value for v in seed_states(transformer_of(training_model))]
        weights = tf.Module()
        # `load_mean` reads them by this name.
        weights._trainable_variables = [
            variable.value for variable in training_model.trainable_variables
        ]
        self._weights = tf.train.Checkpoint(optimizer=weights)
        rest = [variable.value for variable in optimizer.variables]
        self._rest = tf.train.Checkpoint(optimizer=rest, random=random)

    def write(self, step: int) -> None:
        """Writes the checkpoint of an update under a temporary name."""
        part = self._folder / "part"
        part.mkdir(parents=True, exist_ok=True)
        prefix = part / f"ckpt-{step}"
        rest = state_prefix_of(prefix)
        self._rest.write(str(rest))
        self._weights.write(str(prefix))
        # The index of the weights comes last: it marks a complete checkpoint.
        for name in (rest.name, prefix.name):
            # "ckpt-9.data…" sorts before "ckpt-9.index".
            for path in sorted(part.glob(f"{name}.*")):
                path.replace(self._folder / path.name)

    def read_latest(self) -> bool:
        """Loads the latest checkpoint that can be read, if there is one."""
        saved = checkpoints_by_step(self._folder)
        for prefix in reversed(saved.values()):
            rest = state_prefix_of(prefix)
            if not rest.with_suffix(".index").exists():
                continue
            try:
                self._rest.read(str(rest)).assert_consumed()
                self._weights.read(str(prefix)).assert_consumed()
            except (tf.errors.OpError, IndexError) as error:  # TensorFlow raises both.
                print(f"{prefix} is damaged and left out: {first_line(error)}")
                continue
            return True
        if saved:
            raise UserError(
                f"no checkpoint in {self._folder} is whole; start again in another "
                f"--run-dir. There are {', '.join(map(str, saved))}"
            )
        return False

    def delete_others(self, kept: set[str]) -> None:
        """Deletes all other checkpoints, and all states but the latest."""
        for path in checkpoints_by_step(self._folder).values():
            if path.name not in kept:
                delete_checkpoint(path)
        latest = list(checkpoints_by_step(self._folder).values())[-NUM_STATES_KEPT:]
        names = {state_prefix_of(path).name for path in latest}
        for path in sorted(self._folder.glob("state-*"), reverse=True):
            # The index first, as `delete_checkpoint` does.
            if path.stem not in names:
                path.unlink()


def state_prefix_of(prefix: pathlib.Path) -> pathlib.Path:
    return prefix.with_name(prefix.name.replace("ckpt", "state"))
