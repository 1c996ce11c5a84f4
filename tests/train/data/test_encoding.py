import multiprocessing
import os
import signal
import time

import numpy as np
import pytest

from command_line.errors import UserError
from keras_transformer import SubwordTokenizer
from train.data import encoded_corpus, encoding
from train.data.corpus import Pairs
from train.data.encoded_corpus import encode_corpus, encoded_key
from train.data.encoded_pairs import Ids
from train.data.vocabulary import TRAINING, learn_vocabulary, vocabulary_key

SOURCES = ["A red house.", "Two red cats sleep.", "The cat sees the house."]
TARGETS = ["Una casa roja.", "Dos gatos rojos duermen.", "El gato ve la casa."]
PAIRS = Pairs(SOURCES * 5, TARGETS * 5)

# The children use no TensorFlow, whose threads the warning is about.
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def model_proto():
    return learn_vocabulary(PAIRS, 320)


def test_pads_and_takes_sequences():
    rows = [[5, 6, 1], [7, 1], [8, 9, 10, 1]]
    ids = Ids(np.concatenate(rows), np.array([0, 3, 5, 9]))

    padded = ids.pad(np.array([2, 0]), 5)
    taken = ids.take(np.array([2, 0]))

    assert padded.tolist() == [[8, 9, 10, 1, 0], [5, 6, 1, 0, 0]]
    assert padded.dtype == np.int32
    assert taken.flat.tolist() == [8, 9, 10, 1, 5, 6, 1]
    assert taken.lengths.tolist() == [4, 3]


def rows(ids):
    return np.split(ids.flat, ids.offsets[1:-1])


def test_encodes_as_the_exported_tokenizer_does(model_proto, tmp_path):
    lines = ["A red cat.", "Ein Haus – ñandú 🐈", "  two  blanks "]

    pairs = encode_corpus(Pairs(lines, lines[::-1]), model_proto, 90, tmp_path).pairs

    expected = SubwordTokenizer(model_proto).tokenize(lines)
    for ids, order in ((pairs.sources, 1), (pairs.targets, -1)):
        for row, other in zip(rows(ids)[::order], expected, strict=True):
            np.testing.assert_array_equal(row, other)
    assert pairs.sources.flat.dtype == np.uint16
    assert pairs.sources.offsets.dtype == np.int64


def test_order_does_not_hang_on_blocks_and_threads(model_proto, tmp_path, monkeypatch):
    whole = encode_corpus(PAIRS, model_proto, 90, tmp_path / "whole")
    monkeypatch.setattr(encoding, "BLOCK", 2)
    parts = encode_corpus(PAIRS, model_proto, 90, tmp_path / "parts")

    for ids, other in (
        (whole.pairs.sources, parts.pairs.sources),
        (whole.pairs.targets, parts.pairs.targets),
    ):
        np.testing.assert_array_equal(ids.flat, other.flat)
        np.testing.assert_array_equal(ids.offsets, other.offsets)
    np.testing.assert_array_equal(whole.hashes, parts.hashes)
    assert whole.figures == parts.figures


def test_a_large_vocabulary_takes_four_bytes_an_id(model_proto):
    encoder = encoding.PairEncoder((model_proto, model_proto), 90, 1)

    assert encoder.dtype == np.uint16
    assert encoding.smallest_dtype(65_537) == np.uint32


def test_drops_and_counts_pairs(model_proto, tmp_path):
    long = "cat " * 30
    pairs = Pairs(
        ["A cat.", " ", "A cat.", long, "A cat.", "cat …", "A  house."],
        ["Un gato.", "a", "", "a", "Un gato.", "cat …", "A cat ñ."],
    )

    encoded = encode_corpus(pairs, model_proto, 20, tmp_path)

    figures = encoded.figures
    assert len(encoded.pairs) == figures["kept"] == 4
    counts = [figures[name] for name in ("pairs", "empty", "too_long")]
    assert counts == [7, 2, 1]
    assert figures["duplicates"] == 1
    assert figures["source_equals_target"] == 1
    assert figures["longest"] > 30
    # The ellipsis comes back as three dots, on both sides of its pair.
    assert figures["round_trips"] == 8
    assert figures["round_trip_failures"] == 2
    assert figures["round_trip_example"] == ["cat …", "cat ..."]
    signs = "source_lower_case", "target_lower_case", "target_tokenized"
    assert [figures[name] for name in signs] == [1, 1, 0]
    # "ñ" was not in the text of the vocabulary: two bytes in UTF-8.
    assert figures["byte_tokens"] == 2
    assert figures["unknown_tokens"] == 0
    for side, ids in (
        ("source", encoded.pairs.sources),
        ("target", encoded.pairs.targets),
    ):
        assert figures[f"{side}_tokens"] == ids.flat.size
        lengths = np.bincount(ids.lengths, minlength=21)
        assert figures[f"{side}_lengths"] == lengths.tolist()
    both = encoded.pairs.sources.lengths, encoded.pairs.targets.lengths
    limit = int(np.max(both))
    assert encode_corpus(pairs, model_proto, limit, tmp_path).figures["kept"] == 4
    fewer = encode_corpus(pairs, model_proto, limit - 1, tmp_path)
    assert fewer.figures["too_long"] > 1


@pytest.mark.parametrize("nothing", ["\u200b", "\ufeff", "\u200b \u3000\t"])
def test_what_is_nothing_when_normalized_is_empty(model_proto, tmp_path, nothing):
    pairs = Pairs(["A cat.", nothing, "x"], ["Un gato.", "a", nothing])

    encoded = encode_corpus(pairs, model_proto, 20, tmp_path)

    assert encoded.figures["empty"] == 2
    assert len(encoded.pairs) == encoded.figures["kept"] == 1


def test_refuses_a_corpus_of_which_nothing_is_left(model_proto, tmp_path):
    with pytest.raises(UserError, match="no pair.*1 to 3 tokens.*15 pairs"):
        encode_corpus(PAIRS, model_proto, 3, tmp_path)

    assert not list(tmp_path.glob("*.part"))


def keys_of_caches():
    protos, other = (b"model", b"other"), Pairs(TARGETS, SOURCES)
    vocabularies = [(PAIRS, 320), (PAIRS, 321), (other, 320)]
    corpora = [(PAIRS, protos, 90), (PAIRS, protos, 91), (other, protos, 90)]
    corpora.append((PAIRS, protos[::-1], 90))
    return (
        {vocabulary_key(*arguments) for arguments in vocabularies},
        {encoded_key(*arguments) for arguments in corpora},
    )


@pytest.mark.parametrize(
    ("name", "value", "kinds"),
    [
        ("encoded_corpus.FORMAT", 0, (0, 1)),
        ("encoded_corpus.sentencepiece.__version__", "0", (0, 1)),
        ("encoding.ROUND_TRIPS", 7, (1,)),
        ("vocabulary.SAMPLE", 7, (0,)),
        ("vocabulary.TRAINING", {**TRAINING, "character_coverage": 1.0}, (0,)),
        ("vocabulary.TRAINING", {**TRAINING, "new": 7}, (0,)),
    ],
)
def test_what_is_kept_is_named_after_all_it_comes_from(monkeypatch, name, value, kinds):
    before = keys_of_caches()
    assert [len(keys) for keys in before] == [3, 4]
    monkeypatch.setattr(f"train.data.{name}", value)
    after = keys_of_caches()

    for kind in kinds:
        assert not before[kind] & after[kind]


@pytest.mark.parametrize("name", ["target.ids", "source.offsets", "encoded.json"])
def test_a_damaged_file_is_written_again(model_proto, tmp_path, capsys, name):
    first = encode_corpus(PAIRS, model_proto, 90, tmp_path)
    expected = first.pairs.targets.flat.copy()
    (path,) = tmp_path.glob(f"*/{name}")
    path.write_bytes(path.read_bytes()[:-1])

    second = encode_corpus(PAIRS, model_proto, 90, tmp_path)

    assert f"{path} is damaged" in capsys.readouterr().out
    np.testing.assert_array_equal(second.pairs.targets.flat, expected)


def encode_slowly(proto, folder, at):
    """Encodes in a process of its own that kills itself at block `at`."""
    encode = encoding.PairEncoder.__call__

    def die(encoder, first, *arguments):
        if first >= at:
            time.sleep(0.05)  # Blocks before this one are on disk.
            os.kill(os.getpid(), signal.SIGKILL)
        return encode(encoder, first, *arguments)

    encoding.BLOCK = 1
    encoding.PairEncoder.__call__ = die
    encode_corpus(PAIRS, proto, 90, folder)


@forks
def test_a_killed_encoding_is_begun_again(model_proto, tmp_path):
    fork = multiprocessing.get_context("fork")
    for at in (0, 14):
        process = fork.Process(target=encode_slowly, args=(model_proto, tmp_path, at))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        assert len(list(tmp_path.glob("*.part"))) == 1
        assert not list(tmp_path.glob("*/encoded.json"))

    encoded = encode_corpus(PAIRS, model_proto, 90, tmp_path)

    assert len(encoded.pairs) == len(PAIRS)
    assert not list(tmp_path.glob("*.part"))


@forks
def test_of_runs_that_share_a_cache_one_encodes(model_proto, tmp_path, monkeypatch):
    encode_into = encoded_corpus.encode_into

    def encode(folder, *arguments):
        time.sleep(0.3)  # The others come meanwhile.
        (tmp_path / f"encoded by {os.getpid()}").touch()
        encode_into(folder, *arguments)

    monkeypatch.setattr(encoded_corpus, "encode_into", encode)
    arguments = (PAIRS, model_proto, 90, tmp_path / "cache")
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=encode_corpus, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0

    assert len(list(tmp_path.glob("encoded by *"))) == 1
    monkeypatch.setattr(encoded_corpus, "encode_into", None)
    assert len(encode_corpus(*arguments).pairs) == len(PAIRS)
