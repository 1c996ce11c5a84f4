"""Hugging Face's `MarianMTModel`: equal to what that library says."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from convert.__main__ import main
from convert.from_hugging_face import read_vocabularies
from convert.hugging_face_config import read_configuration
from keras_transformer import SearchOptions, SubwordTokenizer
from keras_transformer.search.tensorflow.graph_transformer import search_in_graph
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.other_systems.converted_runs import MAX_LENGTH, write_folder

pytestmark = [
    pytest.mark.peers("torch", "transformers"),
    pytest.mark.slow,
    pytest.mark.usefixtures("one_thread"),
]
TEXTS = [
    *SENTENCES,
    ">>fra<< Two cats sleep.",
    "  Two   cats\tsleep. ",
    "Zwei Kätzchen — 猫 @ 7",
    "x",
]


# Width, layers of the encoder and of the decoder, heads, activation, whether
# embeddings are scaled, and whether both sides share one matrix.
MODELS = [
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


class Both:
    def __init__(self, folder, model):
        (folder / "theirs").mkdir(parents=True)
        self.folder = folder
        width, encoder, decoder, heads, activation, scales, shares = model
        self.theirs = write_folder(
            folder / "theirs",
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
        convert("hugging-face", folder / "theirs", folder / "run")
        self.ours = load(folder / "run")
        configuration = read_configuration(folder / "theirs/config.json")
        self.sources, self.targets, *_ = read_vocabularies(
            folder / "theirs", configuration
        )
        self.pad = configuration.bos_id

    def to_theirs(self, ids, vocabulary):
        rows = np.where(ids == 0, self.pad, vocabulary.rows[ids])
        return rows.astype("int64")

    def their_logits(self, source_ids, target_ids):
        return logits_of(
            self.theirs,
            self.to_theirs(source_ids, self.sources),
            source_ids != 0,
            self.to_theirs(target_ids, self.targets),
        )

    def translate(self, source_ids, beam_size):
        """Returns translations in ids of ours, as they find them."""
        import torch

        with torch.no_grad():
            found = self.theirs.generate(
                input_ids=torch.tensor(self.to_theirs(source_ids, self.sources)),
                attention_mask=torch.tensor((source_ids != 0).astype(int)),
                num_beams=beam_size,
                max_length=MAX_LENGTH,
                length_penalty=1.0,
                early_stopping=False,
                do_sample=False,
            )
        ours = np.zeros(self.pad + 1, int)
        ours[self.targets.rows] = np.arange(len(self.targets))
        ours[self.pad] = 0
        return ours[found.numpy()[:, 1:]]

    def search(self, source_ids, beam_size):
        forbidden = (0, *np.flatnonzero(~self.targets.can_be_generated), 3)
        options = SearchOptions(
            beam_size, 1.0, 1, tuple(map(int, forbidden)), penalty_offset=0
        )
        limits = np.full(len(source_ids), MAX_LENGTH - 1, "int32")

        @tf.function(autograph=False)
        def search(source_ids, limits):
            return search_in_graph(self.ours, source_ids, limits, options)

        return np.array(search(source_ids, limits).ids[:, 0])

    def score(self, source_ids, translations):
        """Returns `log p / length`, by their logits.

        Their search lets a translation end at its limit for nothing.
        """
        begun = np.pad(translations, ((0, 0), (1, 0)), constant_values=3)
        logits = self.their_logits(source_ids, begun[:, :-1])
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        rows = self.targets.rows[translations][..., None]
        found = np.take_along_axis(logits, rows, -1)[..., 0]
        real = translations != 0
        return (found * real).sum(1) / real.sum(1)


def convert(command, model_dir, run_dir):
    options = ["--model-dir", str(model_dir), "--run-dir", str(run_dir)]
    main([command, *options])


def load(run_dir):
    return keras.saving.load_model(run_dir / "model.keras")


def logits_of(theirs, source_ids, mask, target_ids):
    import torch

    with torch.no_grad():
        return theirs(
            input_ids=torch.tensor(source_ids),
            attention_mask=torch.tensor(mask.astype(int)),
            decoder_input_ids=torch.tensor(target_ids),
        ).logits.numpy()


def their_tokenizer(folder):
    import transformers

    return transformers.MarianTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module", params=MODELS, ids=lambda m: "-".join(map(str, m)))
def both(request, tmp_path_factory):
    return Both(tmp_path_factory.mktemp("opus"), request.param)


def random_ids(count, vocabulary, longest, seed):
    """Returns padded ids of words, each row ended by 1."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest, count)
    words = np.flatnonzero(vocabulary.can_be_generated)
    words = words[words > 3]
    ids = random.choice(words, (count, longest))
    ids[np.arange(longest) > lengths[:, None]] = 0
    ids[np.arange(count), lengths] = 1
    return ids.astype("int32")


def random_inputs(sources, targets):
    source_ids = random_ids(9, sources, 11, seed=1)
    target_ids = random_ids(9, targets, 13, seed=2)
    target_ids[:, 0] = 3
    return {"source_ids": source_ids, "target_ids": target_ids}


def test_logits_are_theirs(both):
    inputs = random_inputs(both.sources, both.targets)

    found = np.array(both.ours(inputs))

    expected = both.their_logits(**inputs)
    generated = both.targets.can_be_generated
    real = inputs["target_ids"] != 0
    np.testing.assert_allclose(
        found[real][:, generated],
        expected[real][:, both.targets.rows[generated]],
        atol=1e-4,
    )
    assert found[real][:, ~generated].max() < -50


def test_greedy_translations_are_theirs(both):
    source_ids = random_ids(1_000, both.sources, 9, seed=3)

    found = both.search(source_ids, beam_size=1)

    expected = both.translate(source_ids, beam_size=1)
    longest = max(found.shape[1], expected.shape[1])
    found, expected = (
        np.pad(ids, ((0, 0), (0, longest - ids.shape[1]))) for ids in (found, expected)
    )
    np.testing.assert_array_equal(found, expected)


def test_beams_score_no_less_than_theirs(both):
    source_ids = random_ids(100, both.sources, 9, seed=4)

    found = both.search(source_ids, beam_size=4)

    expected = both.translate(source_ids, beam_size=4)
    scores = [both.score(source_ids, ids) for ids in (found, expected)]
    assert np.mean(scores[0] >= scores[1] - 1e-4) >= 0.99


def test_pieces_are_those_of_their_tokenizer(both):
    tokenizer = SubwordTokenizer.from_pretrained(both.folder / "run")
    theirs = their_tokenizer(both.folder / "theirs")

    for text in TEXTS:
        found = tokenizer.tokenize([text])[0].numpy()
        assert both.sources.rows[found].tolist() == theirs(text)["input_ids"]
        # The other way, only what a translation may say.
        ids = theirs(text_target=text)["input_ids"]
        if 1 not in ids and not text.startswith(">>"):
            found = tokenizer.tokenize_targets([text])[0].numpy()
            assert both.targets.rows[found].tolist() == ids
