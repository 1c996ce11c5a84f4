"""Tests of `train.data.pair_variants`, and of plans of variants."""

import dataclasses
import fractions
import itertools

import numpy as np
import pytest
import sentencepiece

from command_line.errors import UserError
from train.data import encoding
from train.data.augmentation import augment, compile_symbols
from train.data.batch_plan import BatchPlan
from train.data.batches import make_replica_batch
from train.data.corpus import Mixture, Pairs, demo_pairs
from train.data.encoded_corpus import encode_corpus, encoded_key
from train.data.pair_filters import PairFilters
from train.data.pair_variants import VariantEncoder, VariantOptions
from train.data.vocabulary import EncodedPairs, learn_vocabulary

DEMO = demo_pairs("validation")
PAIRS = Pairs(DEMO.sources[:90], DEMO.targets[:90])
FEW = VariantOptions(subword_sampling=0.3, variants=4).resolve()


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def model_proto(request):
    return learn_vocabulary(DEMO, 500, request.param)


@pytest.fixture(scope="module")
def bpe():
    return learn_vocabulary(DEMO, 500)


def encode(proto, folder, options=FEW, pairs=PAIRS, seed=0, max_length=90):
    arguments = proto, max_length, folder, None, PairFilters()
    return encode_corpus(pairs, *arguments, options, seed)


def rows_of(ids):
    return [row.tolist() for row in np.split(ids.flat, ids.offsets[1:-1])]


def test_variants_are_other_splits_of_the_same_text(model_proto, tmp_path):
    model = sentencepiece.SentencePieceProcessor(model_proto=model_proto)
    encoded = encode(model_proto, tmp_path)

    assert len(encoded.pairs) == len(PAIRS)
    for ids, lines in (
        (encoded.pairs.sources, PAIRS.sources),
        (encoded.pairs.targets, PAIRS.targets),
    ):
        rows = rows_of(ids)
        assert len(rows) == 4 * len(lines)
        assert all(row[-1] == 1 and 1 not in row[:-1] for row in rows)
        back = model.decode([row[:-1] for row in rows])
        assert back == [line for line in lines for _ in range(4)]
        different = [len({*map(tuple, rows[i : i + 4])}) for i in range(0, 360, 4)]
        assert np.mean(different) > 3
    # The figures are those of the text as it is.
    plain = encode(model_proto, tmp_path, VariantOptions())
    assert encoded.figures == plain.figures
    np.testing.assert_array_equal(encoded.hashes, plain.hashes)


def test_the_share_of_merges_decides_the_number_of_pieces(bpe, tmp_path):
    sizes = [
        encode(
            bpe, tmp_path, VariantOptions(subword_sampling=share, variants=2).resolve()
        ).pairs.sources.flat.size
        / 2
        for share in (0.01, 0.1, 0.4)
    ]
    plain = encode(bpe, tmp_path, VariantOptions()).pairs.sources.flat.size

    assert plain < sizes[0] < 1.05 * plain < sizes[1] < sizes[2]


@pytest.mark.parametrize("side", [0, 1])
def test_one_side_can_be_sampled_alone(bpe, tmp_path, side):
    options = VariantOptions(
        subword_sampling=0.3,
        variants=3,
        subword_sampling_sides=("source", "target")[side],
    ).resolve()
    found = encode(bpe, tmp_path, options).pairs
    plain = encode(bpe, tmp_path, VariantOptions()).pairs

    def rows(pairs, side):
        return rows_of((pairs.sources, pairs.targets)[side])

    repeated = [row for row in rows(plain, 1 - side) for _ in range(3)]
    assert rows(found, 1 - side) == repeated
    assert rows(found, side) != [r for r in rows(plain, side) for _ in range(3)]


def test_variants_do_not_depend_on_threads(bpe, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "BLOCK", 7)
    found = []
    for workers in (1, 6):
        monkeypatch.setattr(
            encoding, "count_processors", lambda workers=workers: workers
        )
        options = dataclasses.replace(FEW, augment=True)
        found.append(encode(bpe, tmp_path / str(workers), options).pairs)
    other = encode(bpe, tmp_path, dataclasses.replace(FEW, augment=True), seed=1)

    assert rows_of(found[0].sources) == rows_of(found[1].sources)
    assert rows_of(found[0].targets) == rows_of(found[1].targets)
    assert rows_of(found[0].sources) != rows_of(other.pairs.sources)


def test_augmented_pairs_are_those_of_their_numbers(tmp_path):
    symbols = ["<2es>"]
    proto = learn_vocabulary(DEMO, 500, None, symbols)
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    # The first pair is dropped, so numbers are not those of kept pairs.
    pairs = Pairs(
        ["", *(f"<2es> {line}" for line in PAIRS.sources)], ["", *PAIRS.targets]
    )
    options = VariantOptions(augment=True, variants=5).resolve()

    found = encode(proto, tmp_path, options, pairs, seed=3).pairs

    expected = [
        augment(pair, f"3 {number} {variant}", compile_symbols(symbols))
        for number, pair in list(enumerate(pairs))[1:]
        for variant in range(5)
    ]
    sources, targets = (
        [model.decode(row[:-1]) for row in rows_of(ids)]
        for ids in (found.sources, found.targets)
    )
    assert list(zip(sources, targets, strict=True)) == expected
    changed = np.mean([pair not in set(pairs) for pair in expected])
    assert 0.2 < changed < 0.5


def test_a_variant_that_is_too_long_or_empty_is_the_pair_as_it_is(bpe):
    model = sentencepiece.SentencePieceProcessor(model_proto=bpe)
    texts = [("A cat sleeps.", "."), (".", "Un gato.")]
    plain = [
        [model.encode(pair[side], add_eos=True) for pair in texts] for side in (0, 1)
    ]
    longest = max(len(ids) for side in plain for ids in side)
    options = VariantOptions(subword_sampling=0.9, augment=True).resolve()

    found = VariantEncoder(options, 0, (bpe, bpe), longest)([0, 1], texts, plain)

    lengths = [len(ids) for side in found for ids in side]
    assert len(lengths) == 2 * 2 * 8
    assert max(lengths) <= longest
    assert min(lengths) >= 2
    # Both sides are replaced together.
    whole = [tuple(map(tuple, pair)) for pair in zip(*plain, strict=True)]
    pairs = [tuple(map(tuple, pair)) for pair in zip(*found, strict=True)]
    assert whole[0] in pairs[:8]


def epoch_of(plan, epoch):
    """Returns the sources and the labels of an epoch, padding removed."""
    found = []
    for j in range(plan.first_batch(epoch), plan.first_batch(epoch + 1)):
        sources, _, labels, _ = plan.batch(j)
        for row in zip(sources, labels, strict=True):
            ids = tuple(tuple(side[side != 0].tolist()) for side in row)
            if ids[0]:
                found.append(ids)
    return found


def test_an_epoch_has_each_pair_once_in_another_variant(bpe, tmp_path):
    model = sentencepiece.SentencePieceProcessor(model_proto=bpe)
    pairs = encode(bpe, tmp_path).pairs
    plan = BatchPlan(pairs, batch_tokens=400, seed=7)

    epochs = [epoch_of(plan, epoch) for epoch in range(4)]

    texts = [
        [tuple(model.decode(list(side[:-1])) for side in pair) for pair in each]
        for each in epochs
    ]
    for each in texts:
        assert sorted(each) == sorted(PAIRS)
    # In as many epochs as variants, each variant comes once.
    stored = zip(rows_of(pairs.sources), rows_of(pairs.targets), strict=True)
    stored = [tuple(map(tuple, pair)) for pair in stored]
    assert sorted(itertools.chain(*epochs)) == sorted(stored)
    splits = [dict(zip(*each, strict=True)) for each in zip(texts, epochs, strict=True)]
    for a, b in itertools.pairwise(splits):
        assert np.mean([a[pair] != b[pair] for pair in PAIRS]) > 0.8
    tokens = sum(len(side) for each in epochs for p in each for side in p)
    assert plan.tokens == pytest.approx(tokens / 4, abs=1)
    targets = sum(len(pair[1]) for each in epochs for pair in each)
    assert plan.target_tokens == pytest.approx(targets / 4, abs=0.5)


def test_a_batch_of_variants_is_there_at_once_for_any_replicas(bpe, tmp_path):
    pairs = encode(bpe, tmp_path).pairs
    whole = BatchPlan(pairs, batch_tokens=400, seed=7)
    for j in range(0, 2 * whole.batches_per_pass, 5):
        expected = whole.batch(j)[0]
        again = BatchPlan(pairs, batch_tokens=400, seed=7)
        np.testing.assert_array_equal(again.batch(j)[0], expected)
        halves = [make_replica_batch(again, j, i, 2)[0][0] for i in range(2)]
        np.testing.assert_array_equal(halves[0], expected[0::2])
        np.testing.assert_array_equal(halves[1], expected[1::2])


def test_a_mixture_of_variants(bpe, tmp_path):
    one = Pairs(PAIRS.sources[:40], PAIRS.targets[:40])
    two = Pairs(PAIRS.sources[40:], PAIRS.targets[40:])
    half = fractions.Fraction(1, 2)
    mixture = Mixture([(one, half), (two, fractions.Fraction(1))])

    pairs = encode(bpe, tmp_path, pairs=mixture).pairs

    assert (len(pairs), pairs.variants) == (90, 4)
    plan = BatchPlan(pairs, batch_tokens=400, seed=7)
    epochs = [epoch_of(plan, epoch) for epoch in range(12)]
    stored = [
        tuple(map(tuple, pair))
        for part in (one, two)
        for encoded in [encode(bpe, tmp_path, pairs=part).pairs]
        for pair in zip(rows_of(encoded.sources), rows_of(encoded.targets), strict=True)
    ]
    # In twelve epochs a pair of weight a half comes about six times.
    assert set().union(*epochs) == set(stored)


def test_a_cache_is_named_after_the_variants_too(monkeypatch):
    def key(seed=0, **options):
        arguments = DEMO, b"model", 90, None, PairFilters()
        return encoded_key(*arguments, VariantOptions(**options).resolve(), seed)

    def keys():
        return [
            key(augment=True),
            key(augment=True, seed=1),
            key(augment=True, variants=3),
            key(subword_sampling=0.1),
            key(subword_sampling=0.2),
            key(subword_sampling=0.1, subword_sampling_sides="source"),
        ]

    first = keys()
    assert key(seed=1) == encoded_key(DEMO, b"model", 90)
    for name in ("subword_sampling.VERSION", "augmentation.VERSION", "encoding.BLOCK"):
        with monkeypatch.context() as patch:
            patch.setattr(f"train.data.{name}", 7)
            first += keys()
    assert len(set(first)) == 4 * 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variants": 3}, "--variants needs .*: --variants 3 alone"),
        (
            {"augment": True, "subword_sampling_sides": "both"},
            "sides needs --subword-sampling P.*: --subword-sampling-sides both",
        ),
    ],
)
def test_refuses_options_without_what_they_are_of(options, message):
    with pytest.raises(UserError, match=message):
        VariantOptions(**options).resolve()


def test_without_variants_pairs_have_one():
    sides = [encoding.Ids(np.array([5, 1]), np.array([0, 2]))] * 2

    assert len(EncodedPairs(*sides)) == EncodedPairs(*sides).variants == 1
