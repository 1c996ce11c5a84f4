import types

import pytest

from tests.helpers.small_runs import small_task
from train.run.early_stopping import EarlyStopping, ValidationOptions
from train.run.run_folder import checkpoints_by_step, step_of
from train.run.training_state import TrainingState


@pytest.mark.parametrize(
    ("warmup", "patience", "best", "chosen"),
    [
        (0, None, None, [10, 20, 30]),
        (9, None, None, [10, 20, 30]),
        (10, None, None, [20, 30]),
        (29, None, None, [30]),
        (400, None, None, [30]),
        (0, 9, 20, [10, 20, 30]),
        (10, 9, 20, [20, 30]),
        (20, 9, 20, [20]),
        (400, 9, 20, [20]),
        # The best is gone: the latest are taken.
        (0, 9, None, [10, 30]),
    ],
)
def test_the_mean_has_no_checkpoint_of_the_warm_up(warmup, patience, best, chosen):
    state = rounds([2.0, 1.0, 3.0])
    saved = (10, 20, 30) if best or not patience else (10, 30)
    state.saved = {step: f"checkpoints/ckpt-{step}" for step in saved}
    state.checkpoints = [*state.saved.values()]

    paths, step = best_of(state, patience=patience).choose_final(warmup)

    assert [step_of(path) for path in paths] == chosen
    assert step == best


def best_of(state, **options):
    return EarlyStopping(state, ValidationOptions(**options))


def rounds(values, column="val_loss"):
    """The state of a run whose rounds of ten updates had these values."""
    rows = [
        {"step": str(10 * (i + 1)), **({} if v is None else {column: v})}
        for i, v in enumerate(values)
    ]
    return types.SimpleNamespace(history=rows, keep=3)


@pytest.mark.parametrize(
    ("values", "column", "by", "ends"),
    [
        ([3.0, 2.0, 2.5, 2.1], "val_loss", "loss", True),
        ([3.0, 2.0, 2.5, 1.9], "val_loss", "loss", False),
        ([3.0, 2.0, 2.0, 2.0], "val_loss", "loss", True),
        ([3.0, 4.0, 2.5, 4.0], "bleu", "bleu", True),
        ([3.0, 4.0, 2.5], "bleu", "bleu", False),
        # Scores count, not rounds: two of them, and then three.
        ([None, 4.0, None, 3.0, None], "bleu", "bleu", False),
        ([None, 4.0, None, 3.0, 3.5], "chrf", "chrf", True),
        (["", 4.0, "", "", ""], "bleu", "bleu", False),
        # One that is not finite is none that is better.
        ([2.0, "nan", "nan"], "val_loss", "loss", True),
        ([0.0, 0.0, 0.0], "bleu", "bleu", True),
        ([], "val_loss", "loss", False),
    ],
)
def test_patience_counts_scores_since_the_best(values, column, by, ends):
    best = best_of(rounds(values, column), best_by=by, patience=2)

    assert best.out_of_patience == ends
    assert not best_of(rounds(values)).out_of_patience


# Three checkpoints stay; after the best of all come four rounds and more.
VALUES = [5.0, 4.0, 2.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0]


def test_patience_keeps_what_is_around_the_best(tmp_path):
    task = small_task()
    kept = []
    for i, loss in enumerate(VALUES):
        # Every round in a process of its own: each follows from the files.
        state = TrainingState(task, tmp_path, keep=3)
        best = best_of(state, patience=9)
        state.restore()
        task.optimizer.iterations.assign(10 * (i + 1))
        state.on_epoch_end(i, {"val_loss": loss})
        steps = checkpoints_by_step(tmp_path / "checkpoints")
        kept.append([step // 10 for step in steps])

    # Checkpoints around the best stay for one epoch more: the last may be lost.
    assert kept[3:5] == [[1, 2, 3, 4], [2, 3, 4, 5]]
    assert kept[5:7] == [[3, 4, 5, 6], [3, 4, 5, 6, 7]]
    assert kept[7:] == [[3, 4, 5, 6, 7, 8], [3, 4, 5, 7, 8, 9]]
    paths, step = best.choose_final()
    assert step == 40
    assert [path.rpartition("-")[2] for path in paths] == ["30", "40", "50"]
