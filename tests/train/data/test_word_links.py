"""Tests of `train.data.word_links`, and of batches with links."""

import re

import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given, settings, strategies

from train.data.batch_plan import BatchPlan
from train.data.corpus import FilePairs, Pairs
from train.data.derived_corpora import in_both_directions
from train.data.encoded_corpus import encode_corpus
from train.data.vocabulary import learn_vocabulary
from train.data.word_links import LinkedPairs, LinkEncoder, parse_links

SOURCES = ["A red house.", "Two red cats sleep.", "The cat sees the house."]
TARGETS = ["Una casa roja.", "Dos gatos rojos duermen.", "El gato ve la casa."]
LINKS = ["0-0 0-1 1-2", "0-0 1-2 2-1 3-1", "0-0 1-1 2-2 3-3 4-4"]
COPIES = 12


@pytest.fixture(scope="module")
def model_proto():
    return learn_vocabulary(Pairs(SOURCES * 5, TARGETS * 5), 310)


@pytest.fixture(scope="module")
def processor(model_proto):
    return sentencepiece.SentencePieceProcessor(model_proto=model_proto)


@pytest.fixture
def linked(tmp_path):
    for name, lines in (("s", SOURCES), ("t", TARGETS), ("links", LINKS)):
        (tmp_path / name).write_text("\n".join(lines * COPIES) + "\n")
    pairs = FilePairs(tmp_path / "s", tmp_path / "t")
    return LinkedPairs(pairs, tmp_path / "links")


def linked_tokens(processor, source, target, line):
    """Positions of target and source tokens that a line links, naively."""
    links = {tuple(map(int, word.split("-"))) for word in line.split()}
    pieces = [processor.encode(text, out_type=str) for text in (source, target)]
    words = [np.cumsum([p.startswith("▁") for p in side]) - 1 for side in pieces]
    # No word of the tests is a mark alone.
    marks = [[piece in tuple(".,?") for piece in side] for side in pieces]
    return {
        (t, s)
        for t in range(len(pieces[1]))
        for s in range(len(pieces[0]))
        if (words[0][s], words[1][t]) in links and marks[0][s] == marks[1][t]
    }


@settings(max_examples=40, deadline=None)
@given(strategies.data())
def test_all_tokens_of_a_word_have_its_links(processor, data):
    words = strategies.lists(strategies.sampled_from(["cat", "red,", "house."]))
    pair = [" ".join(data.draw(words)) for _ in range(2)]
    counts = [len(text.split()) for text in pair]
    possible = [(i, j) for i in range(counts[0]) for j in range(counts[1])]
    links = data.draw(strategies.sets(strategies.sampled_from(possible or [0])))
    links = sorted(links) if possible else []
    ids = [processor.encode(text, add_eos=True) for text in pair]

    numbers = LinkEncoder([processor] * 2)(
        np.array(links, np.int64).reshape(-1, 2), pair, ids
    )

    line = " ".join(f"{i}-{j}" for i, j in links)
    found = {divmod(number - 1, 1 << 16) for number in numbers.tolist()}
    assert found == linked_tokens(processor, *pair, line)


def test_a_tokenizer_that_finds_other_words_links_none(processor):
    pair = "a\u00a0cat", "gato"  # A no-break space is a blank for both.
    ids = [processor.encode(text, add_eos=True) for text in pair]
    encoder = LinkEncoder([processor] * 2)
    links = np.array([[0, 0]])
    assert len(encoder(links, pair, ids))
    assert not len(encoder(links, ("a cat here", "gato"), ids))


def test_a_word_of_punctuation_alone_keeps_its_links():
    pair = "red & house.", "casa y roja"
    proto = learn_vocabulary(Pairs([pair[0]] * 9, [pair[1]] * 9), 285)
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    ids = [processor.encode(text, add_eos=True) for text in pair]
    links = np.array([[0, 2], [1, 1], [2, 0]])
    numbers = LinkEncoder([processor] * 2)(links, pair, ids)
    pieces = [[processor.id_to_piece(id_) for id_ in side] for side in ids]
    linked = [
        (pieces[1][target], pieces[0][source])
        for target, source in (
            divmod(number - 1, 1 << 16) for number in numbers.tolist()
        )
    ]
    assert [pair for pair in linked if "▁&" in pair] == [("▁y", "▁&")]
    # The full stop has no link: `casa` lacks one.
    assert "." in pieces[0]
    assert not any("." in pair for pair in linked)


def test_vowel_signs_are_letters_of_their_word():
    pair = "The water is cold.", "पानी ठंडा है।"
    proto = learn_vocabulary(Pairs([pair[0]] * 9, [pair[1]] * 9), 300)
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    # Each character is a piece.
    characters = "".join(f"▁{word}" for word in pair[1].split())
    target = [processor.piece_to_id(character) for character in characters]
    ids = [processor.encode(pair[0], add_eos=True), [*target, 1]]
    pieces = [[processor.id_to_piece(id_) for id_ in side] for side in ids]
    assert "<unk>" not in pieces[1]
    links = np.array([[1, 0], [3, 1], [2, 2]])

    numbers = LinkEncoder([processor] * 2)(links, pair, ids).tolist()

    places = [divmod(number - 1, 1 << 16) for number in numbers]
    # All characters have links but the full stops: `है` is linked with `is`.
    assert {t for t, _ in places} == set(range(len(target) - 1))
    assert pieces[0][-2] == "."
    assert len(ids[0]) - 2 not in {s for _, s in places}


def check_batches(plan, processor, expected):
    """Compares the links of an epoch with those of `expected` by text."""
    seen = 0
    for j in range(plan.batches_per_pass):
        sources, _, labels, links, _ = plan.batch(j)
        for source, target, weights in zip(
            sources.tolist(), labels.tolist(), links, strict=True
        ):
            pair = processor.decode(source), processor.decode(target)
            if any(pair):
                found = set(map(tuple, np.argwhere(weights).tolist()))
                assert found == linked_tokens(processor, *pair, expected[pair])
                seen += 1
    return seen


def test_batches_have_the_links_of_their_pairs(
    linked, model_proto, processor, tmp_path
):
    encoded = encode_corpus(linked, model_proto, 90, tmp_path / "cache")
    plan = BatchPlan(encoded.pairs, batch_tokens=200, seed=7)

    pairs = zip(SOURCES, TARGETS, strict=True)
    expected = dict(zip(pairs, LINKS, strict=True))
    assert check_batches(plan, processor, expected) == 3 * COPIES
    # The parts of a batch, too.
    whole, parts = plan.batch(0)[3], [plan.batch(0, i, 2)[3] for i in (0, 1)]
    np.testing.assert_array_equal(whole[0::2], parts[0])
    np.testing.assert_array_equal(whole[1::2], parts[1])


def test_the_other_direction_has_the_links_the_other_way_round(
    linked, model_proto, processor, tmp_path
):
    both = in_both_directions(linked)
    encoded = encode_corpus(both, model_proto, 90, tmp_path / "cache")
    plan = BatchPlan(encoded.pairs, batch_tokens=200, seed=7)

    expected = {}
    for source, target, line in zip(SOURCES, TARGETS, LINKS, strict=True):
        expected[source, target] = line
        turned = [word.split("-")[::-1] for word in line.split()]
        expected[target, source] = " ".join(map("-".join, turned))
    assert check_batches(plan, processor, expected) == 6 * COPIES


@given(strategies.text("019-٣ ", max_size=30))
@example("0-" + "9" * 20)
def test_a_line_has_links_or_none(line):
    found = parse_links(line)

    if found is not None:
        assert [f"{source}-{target}" for source, target in found] == [
            re.sub(r"\b0+(?=\d)", "", word) for word in line.split()
        ]
