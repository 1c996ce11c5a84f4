"""Hugging Face's `M2M100ForConditionalGeneration`: equal to what that library says."""

import json
import re

import numpy as np
import pytest

from convert.__main__ import main
from convert.from_hugging_face import read_tagged_vocabulary
from convert.hugging_face_config import read_configuration
from keras_transformer import SearchOptions, SubwordTokenizer, Transformer
from keras_transformer.search.transformer_search import search_translations
from tests.helpers.example_sentences import WORDS
from tests.helpers.other_systems.converted_runs import MAX_LENGTH
from tests.helpers.other_systems.m2m_100_folders import (
    ADDED,
    KINDS,
    SPM,
    TEXTS,
    write_m2m_folder,
)
from text_processing.language_tags import LanguageTags

pytestmark = [
    pytest.mark.peers("torch", "transformers"),
    pytest.mark.slow,
    pytest.mark.usefixtures("one_thread"),
]
CODES = {"m2m-100": ("en", "fr"), "nllb-200": ("eng_Latn", "fra_Latn")}


class Both:
    """A folder of that library, and the run folder that was made of it."""

    def __init__(self, folder, kind, **numbers):
        import transformers

        theirs, run = folder / "theirs", folder / "run"
        self.theirs = write_m2m_folder(theirs, kind, **numbers)
        main(["hugging-face", "--model-dir", str(theirs), "--run-dir", str(run)])
        self.ours = Transformer.from_pretrained(run)
        self.tokenizer = SubwordTokenizer.from_pretrained(run)
        self.languages = LanguageTags(
            **json.loads((run / "arguments.json").read_text())["languages"]
        )
        configuration = read_configuration(theirs / "config.json")
        self.vocabulary, *_ = read_tagged_vocabulary(theirs, configuration)
        self.source, self.target = CODES[kind]
        self.their_tokenizer = transformers.AutoTokenizer.from_pretrained(
            theirs, src_lang=self.source, tgt_lang=self.target
        )
        pieces = self.tokenizer.id_to_piece(np.arange(len(self.vocabulary))).numpy()
        self.ids = {piece.decode(): id_ for id_, piece in enumerate(pieces)}
        (self.before,), (self.forced,) = (
            [self.ids[tag] for tag in tags]
            for tags in self.languages.find(self.source, self.target)
        )

    def to_theirs(self, ids):
        return self.vocabulary.rows[ids].astype("int64")

    def their_logits(self, source_ids, target_ids):
        import torch

        with torch.no_grad():
            return self.theirs(
                input_ids=torch.tensor(self.to_theirs(source_ids)),
                attention_mask=torch.tensor((source_ids != 0).astype(int)),
                decoder_input_ids=torch.tensor(self.to_theirs(target_ids)),
            ).logits.numpy()

    def translate(self, source_ids, beam_size):
        """Returns their translations, in our ids without BOS."""
        import torch

        with torch.no_grad():
            found = self.theirs.generate(
                input_ids=torch.tensor(self.to_theirs(source_ids)),
                attention_mask=torch.tensor((source_ids != 0).astype(int)),
                forced_bos_token_id=int(self.vocabulary.rows[self.forced]),
                forced_eos_token_id=2,
                num_beams=beam_size,
                max_length=MAX_LENGTH,
                length_penalty=0.0,
                early_stopping=False,
                do_sample=False,
            )
        ours = np.zeros(len(self.vocabulary), int)
        ours[self.vocabulary.rows[:3]] = [0, 1, 2]
        ours[self.vocabulary.rows[4:]] = np.arange(4, len(self.vocabulary))
        return ours[found.numpy()[:, 1:]]

    def search(self, source_ids, beam_size):
        """Returns our translations, and the log-probabilities after the tag."""
        hypotheses = search_translations(
            self.ours,
            source_ids,
            np.full(len(source_ids), MAX_LENGTH - 1, "int32"),
            SearchOptions(beam_size, 0.0, 1),
            prefix_ids=np.full((len(source_ids), 1), self.forced, "int32"),
        )
        return np.array(hypotheses.ids[:, 0])

    def score(self, source_ids, translations):
        """Returns the log-probabilities after the tag, by their logits."""
        begun = np.pad(translations, ((0, 0), (1, 0)), constant_values=3)
        logits = self.their_logits(source_ids, begun[:, :-1])[:, 1:]
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        rows = self.vocabulary.rows[translations[:, 1:]][..., None]
        found = np.take_along_axis(logits, rows, -1)[..., 0]
        return (found * (translations[:, 1:] != 0)).sum(1)


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    return Both(tmp_path_factory.mktemp("m2m"), request.param)


def random_sources(both, count):
    """Returns padded ids of sources, each with its tag and EOS."""
    random = np.random.default_rng(1)
    words = np.flatnonzero(both.vocabulary.can_be_generated)
    words = words[words > 3]
    ids = random.choice(words, (count, 12))
    lengths = random.integers(2, 12, count)
    ids[:, 0] = both.before
    ids[np.arange(12) > lengths[:, None]] = 0
    ids[np.arange(count), lengths] = 1
    return ids.astype("int32")


def pad_alike(*arrays):
    longest = max(array.shape[1] for array in arrays)
    return [np.pad(a, ((0, 0), (0, longest - a.shape[1]))) for a in arrays]


def test_logits_are_theirs(both):
    source_ids = random_sources(both, 9)
    target_ids = np.pad(random_sources(both, 9), ((0, 0), (1, 0)), constant_values=3)
    target_ids[target_ids == 1] = 5

    found = np.array(both.ours([source_ids, target_ids]))

    expected = both.their_logits(source_ids, target_ids)
    real, generated = target_ids != 0, both.vocabulary.can_be_generated
    np.testing.assert_allclose(
        found[real][:, generated],
        expected[real][:, both.vocabulary.rows[generated]],
        atol=1e-4,
    )
    assert found[real][:, ~generated].max() < -50
    assert sorted(both.vocabulary.rows[generated]) == list(range(expected.shape[-1]))


def test_ids_of_texts_are_theirs(both):
    random = np.random.default_rng(2)
    words = [word.decode() for word in WORDS] + ["猫", "7", "Kätzchen", "спит", "8"]
    texts = [" ".join(random.choice(words, random.integers(1, 9))) for _ in range(92)]
    texts += TEXTS
    if ADDED in both.ids:
        texts.append(f"A {ADDED} sleeps.")

    for text in texts:
        found = both.tokenizer.tokenize([text])[0].numpy()
        expected = both.their_tokenizer(text)["input_ids"]
        assert both.to_theirs([both.before, *found]).tolist() == expected, text
        expected = both.their_tokenizer(text_target=text)["input_ids"]
        assert both.to_theirs([both.forced, *found]).tolist() == expected


def test_greedy_translations_are_theirs(both):
    source_ids = random_sources(both, 100)

    found, expected = pad_alike(
        both.search(source_ids, 1), both.translate(source_ids, 1)
    )

    np.testing.assert_array_equal(found, expected)
    assert len(set(np.count_nonzero(found, axis=1))) > 5
    assert len(np.unique(found)) > 20


def test_beams_score_no_less_than_theirs(both):
    source_ids = random_sources(both, 100)

    found, expected = both.search(source_ids, 4), both.translate(source_ids, 4)

    scores = [both.score(source_ids, ids) for ids in (found, expected)]
    assert np.mean(scores[0] >= scores[1] - 1e-4) >= 0.99


def edit(name, **changes):
    """Returns a function that changes the JSON file of a folder."""

    def change(folder):
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("m2m-100", edit("config.json", model_type="bart"), "one of .*'bart'"),
        ("m2m-100", edit("config.json", vocab_size=99), "ids? below 99"),
        ("m2m-100", edit("config.json", pad_token_id=7), "another meaning .*<pad>"),
        ("m2m-100", edit("vocab.json", more=120), "its own"),
        (
            "m2m-100",
            edit("tokenizer_config.json", language_codes="mine"),
            "language_codes of .* one of .*'mine'",
        ),
        ("m2m-100", lambda f: (f / SPM).unlink(), f"no such file: .*{SPM}"),
        ("m2m-100", lambda f: (f / SPM).write_text("x"), "a SentencePiece model"),
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
