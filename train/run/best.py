"""The best checkpoints of a run, and when to stop waiting for a better one."""

import dataclasses
import json
import math
import pathlib
import shutil

import keras
import tensorflow as tf

from command_line.options import option
from command_line.options import positive
from train.data.files import write_atomically
from train.loop import cluster
from train.run.run_folder import saved_steps
from train.run.run_state import RunState

BEAM_SIZE = 4
# What is compared: a column of `history.csv`, and the sign of better.
COLUMNS = {"loss": ("val_loss", -1), "bleu": ("bleu", 1)}


@dataclasses.dataclass(frozen=True)
class Quality:
    """What is watched on the validation set, and what follows from it."""

    validate_bleu: int | None = option(
        None,
        "translate the validation set every N rounds and log its BLEU",
        kind=positive(int),
        metavar="N",
    )
    validation_beam_size: int | None = option(
        None,
        f"beams for that; 1 is greedy search (default: {BEAM_SIZE})",
        kind=positive(int),
        metavar="K",
    )
    keep_best: int | None = option(
        None,
        "checkpoints that stay in RUN_DIR/best, beside the last ones",
        kind=positive(int),
        metavar="N",
    )
    patience: int | None = option(
        None,
        "stop after N rounds without a better one",
        kind=positive(int),
        metavar="N",
    )
    best_by: str | None = option(
        None,
        "what is better, on the validation set (default: loss)",
        choices=list(COLUMNS),
    )


class BestCheckpoints(keras.callbacks.Callback):
    """Keeps the best checkpoints beside the last, and ends a run in vain.

    `RUN_DIR/best` holds copies of the best checkpoints and `best.json`, which
    lists their steps and values, best first; of equals, the earlier. All of it
    follows from the rounds in `history.csv`, so a run that was interrupted
    keeps and stops as one that was not. It comes after `RunState` in the list
    of callbacks.

    Args:
        state: The state of the run.
        run_dir: Folder of the run.
        by: `"loss"`, of the validation set, or `"bleu"`.
        keep: Int, how many stay; 0 for none.
        patience: Positive int: the run ends after so many rounds without a
            better value. `None` for never.
    """

    def __init__(
        self,
        state: RunState,
        run_dir: pathlib.Path,
        by: str = "loss",
        keep: int = 0,
        patience: int | None = None,
    ):
        super().__init__()
        self._state = state
        self._last = run_dir / "checkpoints"
        self._best = run_dir / "best"
        self._column, self._sign = COLUMNS[by]
        self._keep = keep
        self._patience = patience

    @property
    def out_of_patience(self) -> bool:
        """Whether the last value is that many rounds behind the best."""
        if self._patience is None:
            return False
        rounds = self._rounds() or [(0, 0, 0.0)]
        last, *_ = rounds[-1]
        best, *_ = max(rounds, key=lambda round_: self._sign * round_[2])
        # The chief alone knows all rounds; what it decides holds for all.
        return cluster.any_worker(
            tf.distribute.get_strategy(), last - best >= self._patience
        )

    def on_epoch_end(self, epoch, logs=None):
        self.update()
        if self.out_of_patience:
            print(f"no better {self._column} in {self._patience} rounds")
            self.model.stop_training = True

    def update(self) -> None:
        """Makes `RUN_DIR/best` what the rounds so far say."""
        if not self._keep:
            return
        self._best.mkdir(exist_ok=True)
        kept = {**saved_steps(self._last), **saved_steps(self._best)}
        rounds = [round_ for round_ in self._rounds() if round_[1] in kept]
        rounds.sort(key=lambda round_: -self._sign * round_[2])
        values = {step: value for _, step, value in rounds[: self._keep]}
        for step in values.keys() - saved_steps(self._best).keys():
            copy_checkpoint(kept[step], self._best)
        entries = [
            {"step": step, self._column: value}
            for step, value in values.items()
        ]
        text = json.dumps(entries, indent=2) + "\n"
        write_atomically(self._best / "best.json", text.encode())
        for path in self._best.glob("ckpt-*"):
            if int(path.name.split("-")[1].split(".")[0]) not in values:
                path.unlink()

    def _rounds(self):
        """Returns number, step and value of the rounds that have a value."""
        # A row of a file has "" where it has no value.
        rounds = [
            (number, int(row["step"]), float(row[self._column]))
            for number, row in enumerate(self._state.history)
            if row.get(self._column, "") != ""
        ]
        return [round_ for round_ in rounds if math.isfinite(round_[2])]


def best_steps(run_dir: pathlib.Path) -> list[int]:
    """Returns the steps of the checkpoints in `RUN_DIR/best`, best first."""
    path = run_dir / "best" / "best.json"
    if not path.exists():
        return []
    return [entry["step"] for entry in json.loads(path.read_text())]


def copy_checkpoint(prefix: pathlib.Path, folder: pathlib.Path) -> None:
    """Copies a checkpoint; its index, which makes it one, comes last."""
    paths = sorted(prefix.parent.glob(f"{prefix.name}.*"))
    paths.sort(key=lambda path: path.suffix == ".index")
    for path in paths:
        beside = folder / (path.name + ".part")
        shutil.copyfile(path, beside)
        beside.replace(folder / path.name)
