"""Tests of `export.model.forced_decoding` with a custom model."""

import numpy as np

from export.bundle.model_loading import read_run
from export.model.forced_decoding import ForcedDecoder
from export.model.search import SearchSettings
from export.model.tokenized_model import TextModel
from tests.helpers.custom_models import CustomOutputModel
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.numpy_scores import encode, target_log_probabilities


def test_scores_are_those_of_a_custom_output_layer(run_dir, tokenizer):
    trained, protos = read_run(run_dir)
    model = CustomOutputModel(
        trained.vocabulary_size, trained.architecture, trained.sequence_length
    )
    model.build()
    texts = [sentence.encode() for sentence in SENTENCES[:2]]

    decoder = ForcedDecoder(TextModel(model, protos), SearchSettings())
    found = decoder.score(texts, texts[::-1])["token_log_probabilities"]

    sides = encode(tokenizer, texts), encode(tokenizer, texts[::-1])
    expected = target_log_probabilities(model, *sides)
    np.testing.assert_allclose(found, expected, atol=1e-4)
