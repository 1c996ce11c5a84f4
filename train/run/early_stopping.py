"""Stops training early (patience), and keeps the checkpoints around the best."""

import dataclasses
import math

import keras
import tensorflow as tf

from command_line import bleu_tokenizer
from command_line.options import natural, option, positive
from train.loop import multi_worker
from train.run.run_folder import step_of
from train.run.training_state import TrainingState

# The column of `history.csv` to compare, and its sign: +1 if more is better.
COLUMNS = {"loss": ("val_loss", -1), "bleu": ("bleu", 1), "chrf": ("chrf", 1)}
# None of these options affects the weights.
UNCOMPARED = {"tags": ("not compared",)}


@dataclasses.dataclass(frozen=True)
class ValidationOptions:
    """Options of validation: BLEU and early stopping."""

    validate_bleu: int | None = option(
        None,
        "translate the validation set every N epochs and log its BLEU and chrF;"
        " 0 for never (default: once, with the final model)",
        kind=natural,
        metavar="N",
        **UNCOMPARED,
    )
    validation_beam_size: int = option(
        4,
        "beam size of that; 1 is greedy search",
        kind=positive(int),
        metavar="K",
        **UNCOMPARED,
    )
    bleu_tokenize: str | None = option(
        None, bleu_tokenizer.HELP, metavar="NAME", **UNCOMPARED
    )
    patience: int | None = option(
        None,
        "stop after N scores without a better one; the final model is then "
        "the mean around the best",
        kind=positive(int),
        metavar="N",
        **UNCOMPARED,
    )
    best_by: str | None = option(
        None,
        "score of the validation set that decides (default: loss)",
        choices=list(COLUMNS),
        **UNCOMPARED,
    )


class EarlyStopping(keras.callbacks.Callback):
    """Stops a run that no longer improves, and keeps its best part.

    With patience, the checkpoints around the best one stay, for the final model.
    All decisions depend only on the epochs in `history.csv`, so an interrupted
    run decides like an uninterrupted one. In the list of callbacks, this one
    comes after `TrainingState`.
    """

    def __init__(self, state: TrainingState, options: ValidationOptions | None = None):
        super().__init__()
        options = options or ValidationOptions()
        self.state = state
        self._column, self._sign = COLUMNS[options.best_by or "loss"]
        self._patience = options.patience
        if multi_worker.is_chief():
            state.checkpoints_to_keep = self.checkpoints_to_keep

    @property
    def out_of_patience(self) -> bool:
        """Whether `patience` scores have come since the best one."""
        if self._patience is None:
            return False
        scores = [score for _, score in self._scores(self.state.history)]
        waited = len(scores) - 1 - scores.index(max(scores)) if scores else 0
        # Only the chief has the whole history.
        return multi_worker.decided_by_chief(
            tf.distribute.get_strategy(), waited >= self._patience
        )

    def checkpoints_to_keep(self) -> set[int]:
        """Returns the steps of the checkpoints to keep: those around the best.

        Those of the epoch before stay for one more epoch, since the last epoch
        may be undone, if it was a short one or its checkpoint is damaged.
        """
        if self._patience is None:
            return set()
        rows = self.state.history
        return {*self._steps_around(rows), *self._steps_around(rows[:-1])}

    def choose_final(self, warmup: int = 0) -> tuple[list[str], int | None]:
        """Chooses the checkpoints of the final model.

        Args:
            warmup: Int, update until which the learning rate rises. The
                checkpoints up to there are left out, except the best one, and
                the latest if no later one is there.

        Returns:
            Prefixes of checkpoints, oldest first, and the step of the best
            one among them; `None` if they are the latest ones.
        """
        paths, best = self._candidates()
        if best is not None and best <= warmup:
            return [path for path in paths if step_of(path) == best], best
        later = [path for path in paths if step_of(path) > warmup]
        return later or paths[-1:], best

    def _candidates(self):
        """Returns the checkpoints of the final model, warm-up included."""
        rows, saved = self.state.history, self.state.saved
        index = self._find_best(rows)
        best = None if index is None else int(rows[index]["step"])
        # The best may be gone if `--patience` was not there from the beginning.
        if self._patience is None or best not in saved:
            return self.state.checkpoints, None
        steps = [step for step in self._steps_around(rows) if step in saved]
        return [str(saved[step]) for step in steps], best

    def on_epoch_end(self, epoch, logs=None):
        if self.out_of_patience:
            plural = "s"[: self._patience > 1]
            print(f"no better {self._column} in {self._patience} score{plural}")
            self.model.stop_training = True

    def _scores(self, rows):
        """Returns the indices and scores of the epochs that have a score."""
        # A missing value is "" in a row of the file.
        values = ((i, row.get(self._column, "")) for i, row in enumerate(rows))
        scores = [(i, self._sign * float(x)) for i, x in values if x != ""]
        return [(i, x if math.isfinite(x) else -math.inf) for i, x in scores]

    def _find_best(self, rows):
        """Returns the index of the best epoch, or `None`."""
        scores = [(x, -i) for i, x in self._scores(rows) if math.isfinite(x)]
        return -max(scores)[1] if scores else None

    def _steps_around(self, rows):
        """Returns the steps of the epochs around the best one, ascending."""
        best = self._find_best(rows)
        if best is None:
            return []
        places = range(len(rows))
        nearest = sorted(places, key=lambda i: (abs(i - best), -i))
        return sorted(int(rows[i]["step"]) for i in nearest[: self.state.keep])
