"""Writes checkpoints atomically, and reads the latest undamaged one."""

import pathlib

import tensorflow as tf

from command_line.errors import UserError, first_line
from train.loop.training_model import seed_states, transformer_of
from train.run.run_folder import delete_checkpoint, saved_steps

# Number of the latest checkpoints that keep their state.
NUM_STATES_KEPT = 2
# Errors of TensorFlow for files that are changed, truncated or missing. Its
# other errors concern the disk or the memory, not the file.
DAMAGE_ERRORS = (
    tf.errors.DataLossError,
    tf.errors.OutOfRangeError,
    tf.errors.NotFoundError,
)


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
        """Loads the latest undamaged checkpoint, if any; renames damaged ones."""
        saved = saved_steps(self._folder)
        damaged = []
        for step, prefix in reversed(saved.items()):
            files = sorted(self._folder.glob(f"[cs]*-{step}.*"), reverse=True)
            try:
                found = self.read(prefix)
            except DAMAGE_ERRORS as error:
                print(f"{prefix} is damaged and left out: {first_line_of(error)}")
                damaged += files
                continue
            if found:
                for path in damaged:
                    path.replace(path.with_name(f"damaged-{path.name}"))
                return True
        if saved:
            raise UserError(
                f"no checkpoint in {self._folder} is whole; start again in another "
                "--run-dir, or make a model of weights that are left by `python -m "
                f"train.average --steps`. There are {', '.join(map(str, saved))}"
            )
        return False

    def read(self, prefix: pathlib.Path) -> bool:
        """Loads a checkpoint; returns whether it has a state."""
        rest = state_prefix_of(prefix)
        try:
            check_index(prefix)
            if not rest.with_suffix(".index").exists():
                return False
            check_index(rest)
            self._rest.read(str(rest)).assert_consumed()
            self._weights.read(str(prefix)).assert_consumed()
            return True
        except (*DAMAGE_ERRORS, tf.errors.ResourceExhaustedError):
            raise
        except tf.errors.OpError as error:
            raise UserError(
                f"{prefix} cannot be read now, and is left as it is. "
                f"Received: {first_line_of(error)}"
            ) from None

    def delete_old(self, kept: set[str]) -> None:
        """Deletes old checkpoints, and all states but the latest."""
        for path in saved_steps(self._folder).values():
            if path.name not in kept:
                delete_checkpoint(path)
        latest = list(saved_steps(self._folder).values())[-NUM_STATES_KEPT:]
        names = {state_prefix_of(path).name for path in latest}
        for path in sorted(self._folder.glob("state-*"), reverse=True):
            # The index first, as `delete_checkpoint` does.
            if path.stem not in names:
                path.unlink()


def state_prefix_of(prefix: pathlib.Path) -> pathlib.Path:
    """Returns the prefix of the `state-N` of a `ckpt-N`."""
    return prefix.with_name(prefix.name.replace("ckpt", "state"))


def check_index(prefix: pathlib.Path) -> None:
    """Reads an index; the class of its error gives the cause.

    `Checkpoint.read` raises the same class for every cause.
    """
    tf.raw_ops.RestoreV2(
        prefix=str(prefix),
        tensor_names=["_CHECKPOINTABLE_OBJECT_GRAPH"],
        shape_and_slices=[""],
        dtypes=[tf.string],
    )


def first_line_of(error: tf.errors.OpError) -> str:
    """Returns the first line of a message, without the name of the node."""
    return first_line(error).rpartition("}} ")[2]
