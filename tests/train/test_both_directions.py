import fractions
import json
import pathlib

import numpy as np
import pytest

import train.__main__ as train_command
from tests.helpers.small_runs import TINY_OPTIONS, assert_same_run, load_weights
from train.data.corpus import FilePairs, Mixture, Pairs
from train.data.derived_corpora import Reversed, in_both_directions


def test_each_pair_comes_in_both_directions():
    first, second = Pairs(["a", "b"], ["c", "d"]), Pairs(["e"], ["f"])
    both = in_both_directions(
        Mixture([(first, fractions.Fraction(2)), (second, fractions.Fraction(1))])
    )

    pairs = [("a", "c"), ("b", "d"), ("e", "f")]
    assert list(both) == [*pairs, *((b, a) for a, b in pairs)]
    assert [weight for _, weight in both.parts()] == [2, 1, 2, 1]
    assert len({part.digest() for part, _ in both.parts()}) == 4
    assert list(in_both_directions(first))[2:] == [("c", "a"), ("d", "b")]
    files = FilePairs(pathlib.Path("x.en"), pathlib.Path("x.de"))
    assert Reversed(files).languages() == ("de", "en")


def test_it_is_a_run_in_both_directions_and_one_that_starts_from_it(
    corpus, tmp_path, monkeypatch
):
    command = [f"--run-dir={tmp_path / 'run'}", *corpus, *TINY_OPTIONS, "--steps=4"]
    starts, fit = [], train_command.fit.fit

    def fit_first_part(training_model, *args):
        starts.append(training_model.transformer.get_weights())
        if len(starts) > 1:
            raise SystemExit
        return fit(training_model, *args)

    with monkeypatch.context() as patch:
        patch.setattr(train_command.fit, "fit", fit_first_part)
        for _ in range(2):  # The first part is not repeated.
            with pytest.raises(SystemExit):
                train_command.main([*command, "--both-directions"])

    # The first part by hand.
    source, target = corpus[1], corpus[3]
    mixture, first = tmp_path / "mixture.json", tmp_path / "first"
    parts = [{"source": source, "target": target}, {"source": target, "target": source}]
    mixture.write_text(json.dumps(parts))
    options = [f"--mixture={mixture}", *corpus[4:], *TINY_OPTIONS, "--steps=2"]
    train_command.main([f"--run-dir={first}", *options])
    assert_same_run(first, tmp_path / "run" / "both-directions")
    assert len(starts) == 3
    for start in starts[1:]:
        for a, b in zip(start, load_weights(first / "model.keras"), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_warm_up_of_the_first_part_fits_into_its_updates(
    corpus, tmp_path, monkeypatch
):
    trained = []

    def note(options, preset, *_):
        trained.append(preset.recipe)
        raise SystemExit

    monkeypatch.setattr(train_command, "train", note)
    command = [f"--run-dir={tmp_path}", *corpus, *TINY_OPTIONS, "--steps=6"]
    with pytest.raises(SystemExit):
        train_command.main(
            [*command, "--both-directions", "--schedule=cosine"] + ["--warmup-steps=4"]
        )
    (recipe,) = trained
    assert (recipe.steps, recipe.warmup_steps) == (3, 3)
