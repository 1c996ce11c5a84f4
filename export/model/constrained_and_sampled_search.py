"""Signatures that sample translations, or search with constraints."""

import tensorflow as tf

from export.model.request_validation import with_invalid_rows_blanked
from export.model.search import Search, SearchSettings
from export.model.tokenized_model import TextModel
from export.model.translation_outputs import (
    clear_empty,
    describe_best,
    is_suspicious,
    suspicious_output,
)

CONSTRAINT_INPUTS = (
    tf.TensorSpec([None], tf.int32, name="no_repeat_ngram"),
    tf.TensorSpec([None], tf.int32, name="min_length"),
    tf.TensorSpec([None], tf.float32, name="max_length_ratio"),
)
SAMPLING_INPUTS = (
    tf.TensorSpec([None], tf.float32, name="temperature"),
    tf.TensorSpec([None], tf.int32, name="top_k"),
    tf.TensorSpec([None], tf.float32, name="top_p"),
    tf.TensorSpec([None], tf.int32, name="seed"),
)


class ConstrainedAndSampledSearch:
    """Constrained search and sampling, which an export may lack.

    Args:
        model: The `TextModel`.
        search: The `Search`.
        settings: Settings for options that a request does not give.
    """

    def __init__(self, model: TextModel, search: Search, settings: SearchSettings):
        self._model = model
        self._search = search
        self._settings = settings

    def translate_constrained(
        self, text, no_repeat_ngram, min_length, max_length_ratio
    ) -> dict[str, tf.Tensor]:
        """Translates by beam search with constraints for each sentence.

        They replace those of the settings; 0 means no constraint.

        Args:
            text: String tensor `(B,)`.
            no_repeat_ngram: Int32 tensor `(B,)`: length of the n-grams that a
                translation may not repeat.
            min_length: Int32 tensor `(B,)`: minimum tokens before EOS.
            max_length_ratio: Float32 tensor `(B,)`, as in `is_suspicious`.

        Returns:
            The dict of `translate_options`, and `"suspicious"`, bool `(B,)`.
        """
        inputs, error = with_invalid_rows_blanked(
            text,
            no_repeat_ngram=no_repeat_ngram,
            min_length=min_length,
            max_length_ratio=max_length_ratio,
        )
        text, no_repeat_ngram, min_length, max_length_ratio = inputs
        source_ids, lengths, cut = self._model.tokenize(text)
        found = self._search.find_by_rules(
            source_ids, lengths, no_repeat_ngram=no_repeat_ngram, min_length=min_length
        )
        found = clear_empty(found, lengths, cut)
        return {
            **describe_best(self._model, found),
            "suspicious": is_suspicious(found, lengths, max_length_ratio),
            "error": error,
        }

    def sample(self, text, temperature, top_k, top_p, seed) -> dict[str, tf.Tensor]:
        """Samples a translation of each sentence, as `Sampling` describes.

        A sample depends only on its text, options and seed, not on the other
        sentences of the batch.

        Args:
            text: String tensor `(B,)`.
            temperature: Float32 tensor `(B,)`.
            top_k: Int32 tensor `(B,)`; 0 is all.
            top_p: Float32 tensor `(B,)`; 1 is all.
            seed: Int32 tensor `(B,)`.

        Returns:
            The dict of `translate_options`.
        """
        inputs, error = with_invalid_rows_blanked(
            text, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
        )
        text, temperature, top_k, top_p, seed = inputs
        source_ids, lengths, cut = self._model.tokenize(text)
        found = self._search.sample(
            source_ids,
            lengths,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seeds=seed,
        )
        found = clear_empty(found, lengths, cut)
        return {
            **describe_best(self._model, found),
            **suspicious_output(found, lengths, self._settings),
            "error": error,
        }
