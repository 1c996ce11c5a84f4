"""Tests of `train.data.subword_sampling`."""

import collections
import hashlib
import io
import json
import math

import pytest
import sentencepiece

from command_line.errors import UserError
from tests.helpers.python_subprocess import run_python
from train.data.corpus import demo_pairs
from train.data.subword_sampling import SubwordSampler
from train.data.vocabulary import TRAINING

DEMO = demo_pairs("validation")
LINES = [*DEMO.sources, *DEMO.targets]
TEXT = [
    *LINES[:200],
    "<2es> Ein Haus<2es>x – ñandú 🐈🐈 ﬁ  ",
    "  two  blanks▁ ",
    "Ünïcödé日本語 text",
    "",
]
KINDS = ["bpe", "unigram"]


def learn(kind, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        user_defined_symbols=["<2es>", "▁two"],
        minloglevel=2,
        **{**TRAINING, "vocab_size": 500, "model_type": kind, **options},
    )
    return model.getvalue()


@pytest.fixture(scope="module", params=KINDS)
def proto(request):
    return learn(request.param)


def processor(proto):
    return sentencepiece.SentencePieceProcessor(model_proto=proto)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byte_fallback": False},
        {"split_by_whitespace": False},
        {"treat_whitespace_as_suffix": True},
    ],
)
def test_the_most_probable_split_is_sentencepieces(kind, options):
    proto = learn(kind, **options)
    # No merge is left out, or the best split is far more probable.
    share = {"bpe": 0.0, "unigram": 1e4}[kind]

    found = SubwordSampler(proto, share, 0)(TEXT)

    assert found == processor(proto).encode(TEXT, add_eos=True)


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_any_split_is_one_of_the_text(proto, share):
    model = processor(proto)
    plain = model.encode(TEXT)

    found = [SubwordSampler(proto, share, 0)(TEXT, n) for n in range(3)]

    for sequences in found:
        assert all(ids[-1] == 1 for ids in sequences)
        assert model.decode([ids[:-1] for ids in sequences]) == model.decode(plain)
    assert found[0] != found[1] != found[2]


def counts_of(model, word, share, count=20_000):
    """How often each split of a word is drawn, by pieces."""
    sampler = SubwordSampler(model.serialized_model_proto(), share, 0)
    # Words have a limited number of splits, so other seeds would be slow.
    draw = sampler._sample
    found = collections.Counter(draw(f"▁{word}", n) for n in range(count))
    return {
        tuple(map(model.id_to_piece, ids)): number / count
        for ids, number in found.items()
    }


def test_unigrams_are_drawn_as_often_as_their_power_says():
    model = processor(learn("unigram"))
    every = model.nbest_encode("closes", nbest_size=512)
    scores = {
        tuple(map(model.id_to_piece, ids)): sum(map(model.get_score, ids))
        for ids in every
    }
    assert 5 < len(scores) < 512
    weights = {key: math.exp(0.3 * score) for key, score in scores.items()}
    total = sum(weights.values())

    found = counts_of(model, "closes", 0.3)

    assert found.keys() <= scores.keys()
    for key, weight in weights.items():
        expected = weight / total
        deviation = math.sqrt(expected * (1 - expected) / 20_000)
        assert abs(found.get(key, 0) - expected) < 5 * deviation + 1e-4


def probabilities(pieces, scores, share):
    """The distribution of Algorithm 1, by all of its choices."""
    places = [i for i in range(len(pieces) - 1) if pieces[i] + pieces[i + 1] in scores]
    # Of the possible merges, the best that is not left out.
    order = sorted(places, key=lambda i: (-scores[pieces[i] + pieces[i + 1]], i))
    found = collections.Counter({pieces: share ** len(order)})
    for rank, i in enumerate(order):
        merged = (*pieces[:i], pieces[i] + pieces[i + 1], *pieces[i + 2 :])
        rest = probabilities(merged, scores, share)
        for key, value in rest.items():
            found[key] += share**rank * (1 - share) * value
    return found


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_merges_are_left_out_as_often_as_the_paper_says(share):
    model = processor(learn("bpe"))
    scores = {
        model.id_to_piece(i): model.get_score(i)
        for i in range(260, model.get_piece_size())
    }
    expected = probabilities(tuple("▁cats"), scores, share)
    assert len(expected) > 3

    found = counts_of(model, "cats", share)

    assert found.keys() <= expected.keys()
    for key, value in expected.items():
        deviation = math.sqrt(value * (1 - value) / 20_000)
        assert abs(found.get(key, 0) - value) < 5 * deviation + 1e-4


def test_refuses_a_vocabulary_of_characters():
    with pytest.raises(UserError, match="bpe or unigram. Received: .*type char"):
        SubwordSampler(learn("char", vocab_size=320), 0.1, 0)


DIGEST = """
import hashlib, json, sys
from train.data.subword_sampling import SubwordSampler
proto, lines = json.load(open(sys.argv[1]))
found = SubwordSampler(bytes.fromhex(proto), 0.2, 7)(lines, 1, 2)
print(hashlib.sha256(json.dumps(found).encode()).hexdigest())
"""


def test_another_process_draws_the_same(proto, tmp_path):
    found = SubwordSampler(proto, 0.2, 7)(TEXT, 1, 2)
    path = tmp_path / "arguments.json"
    path.write_text(json.dumps([proto.hex(), TEXT]))

    other = run_python("-c", DIGEST, str(path))

    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()
    assert digest in other
    assert SubwordSampler(proto, 0.2, 8)(TEXT, 1, 2) != found
