"""Tests of `train.training_corpus`: the validation pairs of several sources."""

import json
import re
import types

import pytest

from command_line.errors import UserError
from text_processing.placeholders import PLACEHOLDERS
from train.data.corpus import Pairs
from train.data_preparation import check_start
from train.options import parse_options
from train.training_corpus import load_corpus, write_held_out

LANGUAGES = ("en", "de", "fr")
PAIRS = [("en", "de"), ("de", "en"), ("en", "fr"), ("fr", "en")]


@pytest.fixture
def write(tmp_path):
    """Writes a text in three languages and a mixture of it; returns the options."""
    for code in LANGUAGES:
        lines = [f"{code} {number // 2}\n" for number in range(100)]
        (tmp_path / f"all.{code}").write_text("".join(lines))
        (tmp_path / f"valid.{code}").write_text(f"{code} other\n")

    def run(pairs=PAIRS, *options, **changes):
        sources = [
            {
                **{"source": f"all.{source}", "target": f"all.{target}"},
                **{"source_language": source, "target_language": target},
                **changes.get("-".join((source, target)), {}),
            }
            for source, target in pairs
        ]
        path = tmp_path / "mixture.json"
        path.write_text(json.dumps(sources))
        folder = f"--run-dir={tmp_path}"
        return parse_options([folder, f"--mixture={path}", *options])

    return run


def test_both_directions_hold_out_the_same_pairs(write, tmp_path, capsys):
    given = write(PAIRS, "--validation-size=7")

    training, validation = load_corpus(given)
    write_held_out(given)

    assert len(validation) == 4 * 7
    found = [untagged(part) for part, _ in validation.parts()]
    assert {(b, a) for a, b in found[0]} == {*found[1]}
    assert {(b, a) for a, b in found[2]} == {*found[3]}
    learned = {frozenset(pair) for pair in untagged(training)}
    assert not learned & {frozenset(pair) for part in found for pair in part}
    assert [part.languages() for part, _ in validation.parts()] == PAIRS
    assert [part.languages() for part, _ in training.parts()] == PAIRS
    assert all(s.startswith(f"<2{t[:2]}> ") for s, t in [*training, *validation])
    # The files have no tags.
    for number, (codes, part) in enumerate(zip(PAIRS, found, strict=True), 1):
        texts = [
            (tmp_path / f"held_out.{number}.{code}").read_text().splitlines()
            for code in codes
        ]
        assert [*zip(*texts, strict=True)] == part
    assert capsys.readouterr().out.count("7 pairs are held out") == 4


def untagged(corpus):
    return [(source.partition("> ")[2], target) for source, target in corpus]


def test_sources_of_languages_with_validation_files_hold_out_nothing(write, tmp_path):
    files = {"validation_source": "valid.en", "validation_target": "valid.de"}
    given = write([*PAIRS, ("en", "de")], **{"en-de": files})
    sources = json.loads(given.corpus.mixture.read_text())
    for key in files:
        del sources[-1][key]
    given.corpus.mixture.write_text(json.dumps(sources))

    training, validation = load_corpus(given)

    lengths = [len(part) for part, _ in training.parts()]
    assert lengths == [100, 90, 90, 90, 100]
    found = [[*part] for part, _ in validation.parts()]
    assert found[0] == [("<2de> en other", "de other")]
    assert [len(part) for part in found] == [1, 5, 5, 5]


def test_one_target_language_has_no_tags(write):
    training, validation = load_corpus(write([("de", "en"), ("fr", "en")]))

    assert training.symbols() == []
    assert training.languages() == ("", "en")
    assert not any("<2" in source for source, _ in [*training, *validation])


def test_placeholders_stand_after_the_tag(write, tmp_path):
    for code in LANGUAGES:
        lines = [f"{number} {{0}}\n" for number in range(10)]
        (tmp_path / f"all.{code}").write_text("".join(lines))

    training, _ = load_corpus(write(PAIRS, "--placeholders", "--validation-size=1"))

    found = [source for source, _ in training if "⦅" in source]
    assert len(found) == 4 * 5
    assert all(re.fullmatch(r"<2(de|en|fr)> \d ⦅0⦆", source) for source in found)
    assert training.symbols() == [*PLACEHOLDERS, " <2de>", " <2en>", " <2fr>"]


def test_the_weights_follow_the_temperature(write, tmp_path):
    for code in ("en", "fr"):
        path = tmp_path / f"all.{code}"
        path.write_text("".join(f"{code} {i}\n" for i in range(100)))
    (tmp_path / "small.en").write_text("x\n" * 25)
    (tmp_path / "small.de").write_text("y\n" * 25)
    small = {"source": "small.en", "target": "small.de"}
    options = ["--dataset=demo", "--sampling-temperature=2"]
    given = write([("fr", "en"), ("de", "en")], *options, **{"de-en": small})

    training, _ = load_corpus(given)

    # The shares are 10 and 5 of 15 instead of 100 and 25 of 125.
    shares = [float(weight) * len(part) for part, weight in training.parts()]
    assert shares == pytest.approx([125 * 2 / 3, 125 / 3], rel=1e-5)


@pytest.mark.parametrize(
    ("pairs", "changes"),
    [
        (PAIRS, {}),
        (PAIRS[:1], {"en-de": {"validation_source": "x", "validation_target": "y"}}),
    ],
)
def test_validation_pairs_come_from_one_place(write, pairs, changes):
    with pytest.raises(UserError, match="must name no validation pairs"):
        load_corpus(write(pairs, "--dataset=demo", **changes))


def test_a_converted_model_of_several_languages_is_no_start():
    tags = {"source_tags": {"en": "__en__"}, "target_tags": {"de": "__de__"}}
    start = types.SimpleNamespace(languages={**tags, "is_forced": True})

    with pytest.raises(UserError, match="of one pair.*Received: a converted model of"):
        check_start(None, Pairs(["a"], ["b"]), start)
