"""The model and the tokenizer of the run folder, as libraries read them."""

import keras
import pytest
import sentencepiece


@pytest.fixture(scope="module")
def model(run_dir):
    return keras.saving.load_model(run_dir / "model.keras", compile=False)


@pytest.fixture(scope="module")
def tokenizer(run_dir):
    """The sentencepiece library's own."""
    return sentencepiece.SentencePieceProcessor(
        model_file=str(run_dir / "tokenizer.model")
    )
