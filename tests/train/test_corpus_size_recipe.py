"""Tests of `train.corpus_size_recipe`."""

import dataclasses
import json

import pytest

import train.__main__ as train_command
from command_line.errors import UserError
from command_line.options import values_of
from tests.helpers.small_runs import TINY_OPTIONS
from train.corpus_size_recipe import (
    CorpusSizeRecipe,
    apply_recipe,
    fill_in_recipe,
    uses_corpus_size,
)
from train.loop import multi_worker
from train.options import FILES, parse_options
from train.resolve_options import resolve

NUMBERS = [
    field.name
    for field in dataclasses.fields(CorpusSizeRecipe)
    if field.name != "below"
]
TEXTS = [f"--{name.replace('_', '-')}=f" for name in FILES]


def parse(*options, run_dir="run"):
    return parse_options([f"--run-dir={run_dir}", "--preset=tiny", *options])


def numbers_of(options):
    values = values_of(options)
    return [values[name] for name in NUMBERS]


@pytest.mark.parametrize(
    ("num_pairs", "expected"),
    [
        (14_999, [4_000, 2_048, 500, 0.3, True, "pre", "cosine", 10]),
        (15_000, [8_000, 4_096, 500, 0.3, True, "pre", "cosine", 10]),
        (60_000, [8_000, 8_192, 1_000, 0.2, False, "pre", "cosine", 10]),
        (4_000_000, [8_000, 25_000, 2_000, 0.1, False, "pre", "cosine", 10]),
    ],
)
def test_numbers_follow_the_size_of_the_corpus(num_pairs, expected, capsys):
    assert numbers_of(apply_recipe(parse(), num_pairs)) == expected
    assert f"for {num_pairs:,} pairs: --vocab" in capsys.readouterr().out


def test_options_replace_numbers_of_the_recipe(capsys):
    given = parse(
        *("--dropout=0.25", "--batch-tokens=25000", "--steps=400"),
        *("--vocabulary-size=900", "--patience=3", "--norm=post"),
        *("--schedule=inverse-sqrt", "--no-both-directions"),
    )
    # The warm-up takes a quarter of the updates at most.
    expected = [900, 25_000, 100, 0.25, False, "post", "inverse-sqrt", 3]
    assert numbers_of(apply_recipe(given, 20_000)) == expected
    # All that was filled in.
    assert "pairs: --warmup-steps 100 (--re" in capsys.readouterr().out
    given = parse("--tokenizer=t")
    assert apply_recipe(given, 20_000).corpus.vocabulary_size is None


@pytest.mark.parametrize(
    "options",
    [
        ["--validate-bleu=5", "--best-by=bleu"],  # With --patience 10.
        ["--schedule=cosine", "--steps=300"],  # With a warm-up of 75.
    ],
)
def test_options_are_checked_beside_numbers_of_the_recipe(options):
    resolve(fill_in_recipe(parse(*TEXTS, *options)), None)
    with pytest.raises(UserError, match=options[-1].partition("=")[0]):
        resolve(parse("--recipe=paper", *TEXTS, *options), None)


def test_the_recipe_is_the_default_of_small_presets_and_text(tmp_path):
    assert uses_corpus_size(parse(*TEXTS))
    assert uses_corpus_size(parse("--preset=small", *TEXTS))
    assert uses_corpus_size(parse("--preset=base", "--recipe=corpus-size", *TEXTS))
    for others in (
        ["--preset=base", *TEXTS],
        ["--recipe=paper", *TEXTS],
        ["--dataset=demo"],
        ["--init-from=run", *TEXTS],
        ["--task=parsing"],
    ):
        assert not uses_corpus_size(parse(*others))
    # The file of an older run, and that of one with the recipe.
    for recipe in (None, "corpus-size"):
        arguments = {"vocabulary_size": 8, "max_length": 9, "recipe": recipe}
        content = {"arguments": arguments, "preset": {}, "steps_per_epoch": 1}
        (tmp_path / "arguments.json").write_text(json.dumps(content))
        resumed = parse(*TEXTS, run_dir=tmp_path)
        assert uses_corpus_size(resumed) == (recipe is not None)
    # It had no training in both directions.
    assert not apply_recipe(resumed, 20_000).run.both_directions


@pytest.mark.parametrize("obstacle", ["--task=parsing", "--init-from=run"])
def test_the_recipe_is_refused_where_it_cannot_be(obstacle):
    given = parse(obstacle, "--recipe=corpus-size")
    with pytest.raises(UserError, match=f"Received: {obstacle.split('=')[0]}"):
        uses_corpus_size(given)


def test_several_machines_keep_the_numbers_of_the_preset(monkeypatch):
    monkeypatch.setattr(multi_worker, "is_multi_worker", lambda: True)
    assert not uses_corpus_size(parse(*TEXTS))
    with pytest.raises(UserError, match="on one machine. Received: TF_CONFIG"):
        uses_corpus_size(parse("--recipe=corpus-size", *TEXTS))


def test_a_run_with_the_recipe_may_become_longer(corpus, tmp_path, capsys):
    options = [
        option
        for option in TINY_OPTIONS
        if not option.startswith(("--recipe", "--batch-tokens"))
    ]
    command = ["--run-dir", str(tmp_path), *corpus, *options]
    train_command.main([*command, "--steps=4"])
    found = json.loads((tmp_path / "arguments.json").read_text())["arguments"]
    assert found["recipe"] == "corpus-size"
    numbers = [340, 2_048, 1, 0.3, True, "pre", "cosine", 10]
    assert [found[name] for name in NUMBERS] == numbers

    # As if the run had been stopped between its two parts.
    (tmp_path / "arguments.json").rename(tmp_path / "aside")
    longer = parse(*command[2:], "--steps=8", run_dir=tmp_path)
    assert apply_recipe(longer, 20_000).hyperparameters.warmup_steps == 1
    (tmp_path / "aside").rename(tmp_path / "arguments.json")

    train_command.main([*command, "--steps=8"])

    found = json.loads((tmp_path / "arguments.json").read_text())["arguments"]
    assert found["warmup_steps"] == 1
    assert "continuing after update 4" in capsys.readouterr().out
