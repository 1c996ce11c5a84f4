"""Tests of `benchmarks.alignment_error`."""

import random

import numpy as np
import pytest

from benchmarks import alignment_error
from demo_corpus import generator
from tests.helpers.fake_models import FunctionRuntime
from train.data.word_links import parse_links
from translate.runtime.runtime import strings


def test_the_sentences_are_those_of_the_grammar():
    rng, same = random.Random(3), random.Random(3)
    for _ in range(500):
        pair, sure, possible = alignment_error.draw_pair(rng)
        expected = generator.Sentence(same.choice(generator.patterns()), same)
        assert pair == (expected.english, expected.spanish)
        assert sure <= possible


def test_words_of_a_slot_belong_together():
    rng = random.Random(0)
    rows = [alignment_error.draw_pair(rng) for _ in range(20)]
    drawn = {pair: (sure, possible) for pair, sure, possible in rows}
    pair = (
        "Her friend goes to the lake on Tuesdays.",
        "Su amigo va al lago los martes.",
    )
    sure, possible = drawn[pair]
    assert name_words(pair, sure) == {
        *(("Her", "Su"), ("friend", "amigo"), ("goes", "va")),
        *(("the", "al"), ("lake", "lago")),
    }
    assert name_words(pair, possible - sure) == {
        *(("on", "los"), ("on", "martes.")),
        *(("Tuesdays.", "los"), ("Tuesdays.", "martes.")),
    }
    # `in` is a word of the pattern, which has no link.
    pair = (
        "There is a serious singer in the small store.",
        "Hay un cantante serio en la tienda pequeña.",
    )
    sure, possible = drawn[pair]
    assert name_words(pair, sure) == {
        *(("a", "un"), ("serious", "serio"), ("singer", "cantante")),
        *(("the", "la"), ("small", "pequeña."), ("store.", "tienda")),
    }
    assert possible == sure


def name_words(pair, links):
    english, spanish = (text.split() for text in pair)
    return {(english[i], spanish[j]) for i, j in links}


def test_the_error_is_that_of_och_and_ney():
    rows = [((), {(0, 0)}, {(0, 0), (1, 1), (2, 1)}), ((), {(3, 2)}, {(3, 2)})]
    # The word 5 has no link, so what it is linked with does not count.
    found = [{(0, 0), (2, 1), (4, 5)}, {(0, 2)}]
    # |A & S| = 1, |A & P| = 2, |A| = 3, |S| = 2.
    expected = 1 - (1 + 2) / (3 + 2)
    assert alignment_error.error_rate(rows, found) == pytest.approx(expected)


def test_links_are_between_words_and_not_their_punctuation():
    runtime = FunctionRuntime(None)
    runtime.ask = lambda name, inputs: {
        "source_tokens": strings(["▁on", "e", ",", "▁two", "</s>"])[None],
        "target_tokens": strings(["▁a", "▁b", "b", ".", "</s>"])[None],
        # `b` attends to `two` and to the comma, the full stop to `one`.
        "alignment": np.array([[1, 3, 2, 0, 4]]),
    }

    found = list(alignment_error.align(runtime, [("s", "t")]))
    assert found == [{(0, 0), (1, 1)}]


def test_it_writes_text_with_links(tmp_path, monkeypatch):
    sizes = {"train": 20, "valid": 3, "test": 2}
    monkeypatch.setattr(alignment_error, "SIZES", sizes)
    alignment_error.main(["--write", str(tmp_path)])
    for split, size in sizes.items():
        sources, targets, links = (
            (tmp_path / f"{split}.{suffix}").read_text().splitlines()
            for suffix in ("en", "es", "links")
        )
        assert len(sources) == len(targets) == len(links) == size
        for source, target, line in zip(sources, targets, links, strict=True):
            ends = len(source.split()), len(target.split())
            assert (parse_links(line) < ends).all()


def test_an_export_is_measured(export_dir, monkeypatch, capsys):
    monkeypatch.setattr(alignment_error, "SIZES", {"test": 5})
    alignment_error.main(["--export-dir", str(export_dir)])
    assert "% of 5 sentences" in capsys.readouterr().out
