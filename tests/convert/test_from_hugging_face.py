"""Hugging Face's `MarianMTModel`, M2M-100 and NLLB-200: equal to that library."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from convert.__main__ import main
from convert.from_hugging_face import read_tagged_vocabulary, read_vocabularies
from convert.hugging_face_config import read_configuration
from keras_transformer import SearchOptions, SubwordTokenizer, Transformer
from keras_transformer.search.tensorflow.graph_transformer import search_in_graph
from tests.helpers.example_sentences import SENTENCES, WORDS
from tests.helpers.other_systems.converted_runs import MAX_LENGTH, write_folder
from tests.helpers.other_systems.m2m_100_folders import (
    ADDED,
    KINDS,
    TEXTS,
    write_m2m_folder,
)
from text_processing.language_tags import LanguageTags

pytestmark = [
    pytest.mark.peers("torch", "transformers"),
    pytest.mark.slow,
    pytest.mark.usefixtures("one_thread"),
]
# Width, layers of the encoder and of the decoder, heads, activation, whether
# embeddings are scaled, and whether both sides share one matrix.
MARIAN_MODELS = [
    (64, 2, 6, 4, "swish", True, True),
    (64, 6, 1, 4, "relu", False, True),
    (64, 2, 2, 4, "gelu", True, True),
    (96, 3, 1, 4, "swish", False, True),
    (128, 1, 2, 8, "relu", True, True),
    (128, 2, 1, 1, "gelu", False, True),
    (256, 1, 1, 8, "swish", True, True),
    (512, 1, 1, 8, "relu", True, True),
    (1024, 1, 1, 16, "relu", True, True),
    (64, 2, 3, 4, "swish", True, False),
    (64, 3, 2, 4, "relu", True, False),
    (96, 1, 1, 4, "gelu", False, False),
]
CODES = {"m2m-100": ("en", "fr"), "nllb-200": ("eng_Latn", "fra_Latn")}


class Both:
    """A model of that library, and ours, which was made of its folder."""

    length_penalty = 1.0
    before, forced = [], []  # Tags of sources and of translations.

    def __init__(self, folder, kind):
        self.folder, run = folder / "theirs", folder / "run"
        self.theirs = self.write(kind)
        main(["hugging-face", f"--model-dir={self.folder}", f"--run-dir={run}"])
        self.ours = Transformer.from_pretrained(run)
        self.tokenizer = SubwordTokenizer.from_pretrained(run)
        self.configuration = read_configuration(self.folder / "config.json")
        self.options = {}  # Of their search.
        self.read(kind, json.loads((run / "arguments.json").read_text()))

    def write(self, kind):
        width, encoder, decoder, heads, activation, scales, shares = kind
        self.folder.mkdir()
        return write_folder(
            self.folder,
            shares,
            d_model=width,
            encoder_layers=encoder,
            decoder_layers=decoder,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=2 * width,
            decoder_ffn_dim=2 * width,
            activation_function=activation,
            scale_embedding=scales,
        )

    def read(self, kind, arguments):
        found = read_vocabularies(self.folder, self.configuration)
        self.sources, self.targets, *_ = found

    def to_theirs(self, ids, vocabulary):
        ids = np.asarray(ids)
        rows = np.where(ids == 0, self.configuration.padding_id, vocabulary.rows[ids])
        return rows.astype("int64")

    def their_inputs(self, source_ids):
        import torch

        return {
            "input_ids": torch.tensor(self.to_theirs(source_ids, self.sources)),
            "attention_mask": torch.tensor((source_ids != 0).astype(int)),
        }

    def their_logits(self, source_ids, target_ids):
        import torch

        with torch.no_grad():
            return self.theirs(
                **self.their_inputs(source_ids),
                decoder_input_ids=torch.tensor(
                    self.to_theirs(target_ids, self.targets)
                ),
            ).logits.numpy()

    def translate(self, source_ids, beam_size, count=1, **options):
        """Returns their best translations, in our ids without BOS."""
        import torch

        with torch.no_grad():
            found = self.theirs.generate(
                **self.their_inputs(source_ids),
                num_beams=beam_size,
                num_return_sequences=count,
                max_length=MAX_LENGTH,
                length_penalty=self.length_penalty,
                early_stopping=False,
                do_sample=False,
                **self.options,
                **options,
            )
        ours = np.zeros(self.configuration.vocabulary_size, int)
        known = np.array([1, 2, *range(4, len(self.targets))])
        ours[self.targets.rows[known]] = known
        ours[self.configuration.padding_id] = 0
        return ours[found.numpy()[:, 1:]]

    def search(self, source_ids, beam_size, count=1, **rules):
        """Returns our best translations."""
        forbidden = (0, *np.flatnonzero(~self.targets.can_be_generated), 3)
        forbidden = tuple(map(int, forbidden))
        options = SearchOptions(
            beam_size, self.length_penalty, count, forbidden, penalty_offset=0, **rules
        )
        limits = np.full(len(source_ids), MAX_LENGTH - 1, "int32")
        prefix_ids = np.array([self.forced] * len(source_ids), "int32")

        @tf.function(autograph=False)
        def search(*inputs):
            source_ids, limits, prefix_ids = inputs
            return search_in_graph(self.ours, source_ids, limits, options, prefix_ids)

        found = np.array(search(source_ids, limits, prefix_ids).ids)
        return found.reshape(-1, found.shape[-1])

    def score(self, source_ids, translations):
        """Returns the scores of what follows the tag, by their logits.

        Their search lets a translation end at its limit for nothing.
        """
        begun = np.pad(translations, ((0, 0), (1, 0)), constant_values=3)
        logits = self.their_logits(source_ids, begun[:, :-1])
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        rows = self.targets.rows[translations][..., None]
        found = np.take_along_axis(logits, rows, -1)[..., 0]
        real = translations != 0
        real[:, : len(self.forced)] = False
        return (found * real).sum(1) / real.sum(1) ** self.length_penalty


class Tagged(Both):
    """The same for M2M-100 or NLLB-200, with the tags of two languages."""

    length_penalty = 0.0

    def write(self, kind):
        return write_m2m_folder(self.folder, kind)

    def read(self, kind, arguments):
        import transformers

        self.sources, *_ = read_tagged_vocabulary(self.folder, self.configuration)
        self.targets = self.sources
        source, target = CODES[kind]
        self.their_tokenizer = transformers.AutoTokenizer.from_pretrained(
            self.folder, src_lang=source, tgt_lang=target
        )
        pieces = self.tokenizer.id_to_piece(np.arange(len(self.targets))).numpy()
        self.ids = {piece.decode(): id_ for id_, piece in enumerate(pieces)}
        self.before, self.forced = (
            [self.ids[tag] for tag in tags]
            for tags in LanguageTags(**arguments["languages"]).find(source, target)
        )
        tag = int(self.targets.rows[self.forced[0]])
        self.options = {"forced_bos_token_id": tag, "forced_eos_token_id": 2}


@pytest.fixture(
    scope="module", params=[*MARIAN_MODELS, *KINDS], ids=lambda kind: str(kind)
)
def both(request, tmp_path_factory):
    cls = Tagged if request.param in KINDS else Both
    return cls(tmp_path_factory.mktemp("both"), request.param)


def random_ids(count, vocabulary, longest, seed, first=()):
    """Returns padded ids of words, each row ended by 1, after the `first` ones."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest, count)
    words = np.flatnonzero(vocabulary.can_be_generated)
    words = words[words > 3]
    ids = random.choice(words, (count, longest))
    ids[np.arange(longest) > lengths[:, None]] = 0
    ids[np.arange(count), lengths] = 1
    return np.insert(ids, 0, np.array([first], int).T, axis=1).astype("int32")


def random_sources(both, count):
    return random_ids(count, both.sources, 11, seed=1, first=both.before)


def test_logits_are_theirs(both):
    source_ids = random_sources(both, 9)
    target_ids = random_ids(9, both.targets, 13, seed=2, first=[3])

    found = np.array(both.ours([source_ids, target_ids]))

    expected = both.their_logits(source_ids, target_ids)
    real, generated = target_ids != 0, both.targets.can_be_generated
    rows = both.targets.rows[generated]
    np.testing.assert_allclose(
        found[real][:, generated], expected[real][:, rows], atol=1e-4
    )
    assert found[real][:, ~generated].max() < -50
    if both.forced:
        assert sorted(rows) == list(range(expected.shape[-1]))


def pad_alike(*arrays):
    longest = max(array.shape[1] for array in arrays)
    return [np.pad(a, ((0, 0), (0, longest - a.shape[1]))) for a in arrays]


def test_greedy_translations_are_theirs(both):
    source_ids = random_sources(both, 100 if both.forced else 1_000)

    found, expected = pad_alike(
        both.search(source_ids, 1), both.translate(source_ids, 1)
    )

    np.testing.assert_array_equal(found, expected)
    if both.forced:  # Most small models of Marian repeat one piece.
        assert len(set(np.count_nonzero(found, axis=1))) > 5
        assert len(np.unique(found)) > 20


@pytest.mark.parametrize("both", KINDS, indirect=True)
def test_four_beams_of_one_length_are_theirs(both):
    """Where no translation ends early, both searches keep the best of each step."""
    source_ids = random_sources(both, 100)

    found = both.search(source_ids, 4, 4, min_length=MAX_LENGTH - 2)
    expected = both.translate(source_ids, 4, 4, min_length=MAX_LENGTH)

    # Ours counts the probability of the end, so the four may be in another order.
    for rows in (found, expected):
        assert rows.shape == (400, MAX_LENGTH - 1)
    for ours, theirs in zip(np.split(found, 100), np.split(expected, 100), strict=True):
        assert {*map(tuple, ours.tolist())} == {*map(tuple, theirs.tolist())}


def test_beams_score_no_less_than_theirs(both):
    source_ids = random_sources(both, 100)

    found, expected = both.search(source_ids, 4), both.translate(source_ids, 4)

    scores = [both.score(source_ids, ids) for ids in (found, expected)]
    assert np.mean(scores[0] >= scores[1] - 1e-4) >= 0.99


def test_pieces_are_those_of_their_tokenizer(both):
    check = check_tagged_pieces if both.forced else check_pieces
    check(both)


def check_pieces(both):
    import transformers

    theirs = transformers.MarianTokenizer.from_pretrained(both.folder)
    texts = [*SENTENCES, ">>fra<< Two cats sleep.", "  Two   cats\tsleep. "]

    for text in [*texts, "Zwei Kätzchen — 猫 @ 7", "x"]:
        found = both.tokenizer.tokenize([text])[0].numpy()
        assert both.sources.rows[found].tolist() == theirs(text)["input_ids"]
        # The other way, only what a translation may say.
        ids = theirs(text_target=text)["input_ids"]
        if 1 not in ids and not text.startswith(">>"):
            found = both.tokenizer.tokenize_targets([text])[0].numpy()
            assert both.targets.rows[found].tolist() == ids


def check_tagged_pieces(both):
    random = np.random.default_rng(2)
    words = [word.decode() for word in WORDS] + ["猫", "7", "Kätzchen", "спит", "8"]
    texts = [" ".join(random.choice(words, random.integers(1, 9))) for _ in range(92)]
    texts += TEXTS
    if ADDED in both.ids:
        texts.append(f"A {ADDED} sleeps.")

    for text in texts:
        found = both.tokenizer.tokenize([text])[0].numpy()
        for tags, key in ((both.before, "text"), (both.forced, "text_target")):
            expected = both.their_tokenizer(**{key: text})["input_ids"]
            ids = both.to_theirs([*tags, *found], both.sources)
            assert ids.tolist() == expected, text


def edit(name, **changes):
    """Returns a function that changes the JSON file of a folder."""

    def change(folder):
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        (
            "m2m-100",
            edit("tokenizer_config.json", language_codes="mine"),
            "language_codes of .* be 'm2m100'.*'mine'",
        ),
        ("nllb-200", lambda f: (f / "tokenizer.json").unlink(), "codes of languages"),
        ("nllb-200", edit("tokenizer.json", added_tokens=[{"id": 3}]), "be whole"),
        (
            "nllb-200",
            edit("tokenizer_config.json", legacy_behaviour=True),
            "legacy_behaviour of .* False",
        ),
    ],
)
def test_refuses_a_folder(kind, change, words, tmp_path, refused, capsys):
    write_m2m_folder(tmp_path / "theirs", kind, encoder_layers=1, decoder_layers=1)
    change(tmp_path / "theirs")
    capsys.readouterr()  # Their progress bar.

    assert re.search(words, refused("hugging-face", "--model-dir", tmp_path / "theirs"))
