import dataclasses
import json

import pytest
import tensorflow_datasets as tfds

from command_line.errors import UserError
from command_line.options import flag, values_of
from tests.helpers.small_runs import TINY_OPTIONS, claim_run
from train.corpus_size_recipes import CorpusSizeRecipe, describe_recipe
from train.loop import multi_worker
from train.options import FILES, parse_options
from train.resolve_options import check_corpus, resolve
from train.training_corpus import load_corpus, write_held_out

GIVEN_FILES = [f"{flag(name)}=f" for name in FILES]


def parse(*options):
    return parse_options(["--run-dir=run", *map(str, options)])


def load(*options):
    given = parse(*options)
    check_corpus(given)
    return load_corpus(given)


def test_the_arguments_of_a_run_are_its_options():
    resolved, _ = resolve(parse("--dataset=demo", "--patience=2"), None)

    arguments = resolved.arguments()
    assert {"dataset", "num_layers", "patience"} < arguments.keys()
    assert not {"run_dir", "cache_dir", "devices"} & arguments.keys()
    assert json.loads(json.dumps(arguments)) == arguments
    # Defaults are resolved, and what was not asked for is null.
    assert arguments["vocabulary_size"] == 1_500
    assert (arguments["preset"], arguments["best_by"]) == ("base", "loss")
    assert arguments["bleu_tokenize"] is arguments["steps"] is None
    files = parse(*GIVEN_FILES).arguments()
    assert files["train_source"] == "f"


def test_options_replace_numbers_of_the_preset():
    options = ["--decoder-layers=2", "--activation=gelu", "--decoder-mixer=ssru"]
    _, preset = resolve(parse("--dataset=demo", "--preset=tiny", *options), None)

    found = preset.architecture
    assert (found.decoder_layers, found.activation) == (2, "gelu")
    assert (found.decoder_mixer, found.num_layers) == ("ssru", 4)


def test_a_mixture_takes_its_validation_set_from_the_other_options(tmp_path):
    for name, text in (("a.en", "one\ntwo\n"), ("a.es", "uno\ndos\n")):
        (tmp_path / name).write_text(text)
    path = tmp_path / "mixture.json"
    path.write_text('[{"source": "a.en", "target": "a.es"}]')
    cache = f"--cache-dir={tmp_path / 'cache'}"
    validation = [
        f"--validation-{side}={tmp_path / name}"
        for side, name in (("source", "a.es"), ("target", "a.en"))
    ]
    for options, count in ((["--dataset=demo"], 500), (validation, 2)):
        training, other = load("--mixture", path, cache, *options)

        assert list(training) == [("one", "uno"), ("two", "dos")]
        assert len(other) == count


def test_what_is_held_out_is_written_without_placeholders(tmp_path, capsys):
    names = ("all.source", "all.target")
    lines = [f"line {i} of www.example.org/{i}" for i in range(40)]
    for name in names:
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    given = parse_options(
        [
            *(f"--run-dir={tmp_path}", "--placeholders", "--validation-size=9"),
            f"--train-source={tmp_path / names[0]}",
            f"--train-target={tmp_path / names[1]}",
        ]
    )

    training, validation = load_corpus(given)
    write_held_out(given)

    assert (len(training), len(validation)) == (31, 9)
    assert sum("⦅0⦆" in source for source, _ in validation) == 5
    for side in ("source", "target"):
        found = (tmp_path / f"held_out.{side}").read_text().splitlines()
        assert {*found} < {*lines}
        assert found == sorted(found, key=lines.index)
    assert "9 pairs are held out" in capsys.readouterr().out


def test_a_set_is_read_as_the_options_say(tmp_path):
    options = ["--dataset=tfds:wmt14_translate/de-en", f"--cache-dir={tmp_path}"]
    with tfds.testing.mock_data(num_examples=3):
        training, _ = load(*options)
        back, _ = load(*options, "--source-language=en")
        part, other = load(*options, "--train-split=test", "--validation-split=train")

        assert [pair[::-1] for pair in training] == list(back)
        # The text of each split is the same here.
        found = [corpus._corpus.name.split()[-1] for corpus in (training, part, other)]
        assert found == ["train", "test", "train"]


# Options, and what they are refused with.
REFUSALS = """
--sampling-temperature=5 $TRAIN $VALIDATION -> needs --mixture. Received: it
--train-source=f -> --train-source and --train-target.*Received: --train-source$
$TRAIN --validation-source=f -> --validation-target. Received: --validation-source$
$VALIDATION -> --train-target. Received: neither$
--validation-size=9 $TRAIN $VALIDATION -> must come without --dataset
--validation-size=9 --dataset=demo -> Received: --dataset$
--mixture=m $TRAIN $VALIDATION -> Received: --train-source
$TRAIN $VALIDATION --train-pairs=x -> : --train-pairs, --train-source, --train-target
--dataset=demo --train-pairs=x -> Received: --train-pairs
--dataset=demo --train-pairs=x --mixture=m -> Received: --train-p
--dataset=demo --train-source=f -> --dataset must come without
--dataset=demo --init-from=r --tokenizer=m -> --init-from must come without --tokenizer
--source-language=de $TRAIN $VALIDATION -> needs --dataset or --mixture or
--target-language=de $TRAIN $VALIDATION -> needs --dataset or --mixture or
--mixture=m --dataset=demo --train-split=train[:9%] -> -split must come without --m
--mixture=m $VALIDATION --validation-split=test -> --validation-split needs --dataset
--dataset=demo --best-by=loss -> --best-by loss needs --patience N
--dataset=demo --best-by=bleu --patience=3
 -> --best-by bleu needs --validate-bleu N. Received: --best-by bleu alone
"""
NAMES = {"TRAIN": GIVEN_FILES[:2], "VALIDATION": GIVEN_FILES[2:]}


@pytest.mark.parametrize("case", REFUSALS.replace("\n ", " ").strip().splitlines())
def test_refuses_options_that_do_not_go_together(case):
    for name, options in NAMES.items():
        case = case.replace(f"${name}", " ".join(options))
    options, message = case.split(" -> ")

    with pytest.raises(UserError, match=message):
        resolve(parse(*options.split()), None)


NUMBERS = [
    field.name
    for field in dataclasses.fields(CorpusSizeRecipe)
    if field.name != "below"
]


def parse_tiny(*options):
    return parse_options(["--run-dir=run", "--preset=tiny", *options])


def numbers_of(given, num_pairs, earlier=None):
    values = values_of(resolve(given, None, earlier, num_pairs)[0])
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
def test_numbers_follow_the_size_of_the_corpus(num_pairs, expected):
    assert numbers_of(parse_tiny(*GIVEN_FILES), num_pairs) == expected


def test_options_replace_numbers_of_the_recipe():
    given = parse_tiny(
        *("--dropout=0.25", "--batch-tokens=25000", "--steps=400"),
        *("--vocabulary-size=900", "--patience=3", "--norm=post", *GIVEN_FILES),
        *("--schedule=inverse-sqrt", "--no-both-directions"),
    )
    # The warm-up takes a quarter of the updates at most.
    expected = [900, 25_000, 100, 0.25, False, "post", "inverse-sqrt", 3]
    assert numbers_of(given, 20_000) == expected
    # All that was filled in.
    said = describe_recipe(given, resolve(given, None, None, 20_000)[0], 20_000)
    assert said.startswith("for 20,000 pairs: --warmup-steps 100 (--recipe paper")


@pytest.mark.parametrize(
    "options",
    [
        ["--validate-bleu=5", "--best-by=bleu"],  # With --patience 10.
        ["--schedule=cosine", "--steps=300"],  # With a warm-up of 75.
    ],
)
def test_options_are_checked_beside_numbers_of_the_recipe(options):
    resolve(parse_tiny(*GIVEN_FILES, *options))
    with pytest.raises(UserError, match=options[-1].partition("=")[0]):
        resolve(parse_tiny("--recipe=paper", *GIVEN_FILES, *options))


@pytest.mark.parametrize(
    ("options", "earlier", "recipe"),
    [
        (GIVEN_FILES, None, "corpus-size"),
        (["--preset=small", *GIVEN_FILES], None, "corpus-size"),
        (["--preset=base", "--recipe=corpus-size", *GIVEN_FILES], None, "corpus-size"),
        (["--preset=base", *GIVEN_FILES], None, "paper"),
        (["--recipe=paper", *GIVEN_FILES], None, "paper"),
        (["--dataset=demo"], None, "paper"),
        (GIVEN_FILES, {"recipe": "paper"}, "paper"),
        (GIVEN_FILES, {"recipe": "corpus-size"}, "corpus-size"),
    ],
)
def test_the_recipe_is_the_default_of_small_presets_and_text(options, earlier, recipe):
    resolved, _ = resolve(parse_tiny(*options), None, earlier, 20_000)

    assert resolved.run.recipe == recipe
    # A run that is resumed had no training in both directions.
    assert resolved.run.both_directions == (recipe != "paper" and not earlier)


@pytest.mark.parametrize("option", ["--recipe=corpus-size", "--both-directions"])
def test_numbers_by_size_are_refused_where_they_cannot_be(option):
    with pytest.raises(UserError, match="Received: --init-from"):
        resolve(parse("--init-from=run", option, *GIVEN_FILES), None)


def test_several_machines_keep_the_numbers_of_the_preset(monkeypatch):
    monkeypatch.setattr(multi_worker, "is_multi_worker", lambda: True)
    assert resolve(parse_tiny(*GIVEN_FILES))[0].run.recipe == "paper"
    with pytest.raises(UserError, match="on one machine. Received: TF_CONFIG"):
        resolve(parse_tiny("--recipe=corpus-size", *GIVEN_FILES))


def test_a_run_with_the_recipe_may_become_longer(corpus, tmp_path):
    options = [
        option
        for option in TINY_OPTIONS
        if not option.startswith(("--recipe", "--batch-tokens"))
    ]
    command = ["--run-dir", tmp_path, *corpus, *options, "--no-both-directions"]
    numbers = [340, 2_048, 1, 0.3, False, "pre", "cosine", 10]
    for steps in (4, 8):  # The warm-up stays a quarter of four.
        claim_run([*command, f"--steps={steps}"])

        found = json.loads((tmp_path / "arguments.json").read_text())["arguments"]
        assert (found["recipe"], found["steps"]) == ("corpus-size", steps)
        assert [found[name] for name in NUMBERS] == numbers
