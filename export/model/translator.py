"""Signatures of an export: a trained Transformer as TensorFlow functions.

Docstrings give the outputs; `docs/reference/signatures.md` has all inputs and limits.
Axes: `B` texts, `K` beams, `S` source and `L` translation tokens.
"""

import dataclasses
import functools
from collections.abc import Iterable, Sequence

import tensorflow as tf

from export.model.beam_trace import describe_trace
from export.model.document_translation import translate_documents
from export.model.forced_decoding import ForcedDecoder
from export.model.request_splitting import count_positions
from export.model.request_validation import (
    check_beams,
    with_checked_options,
    with_invalid_rows_blanked,
    within_beam_positions,
)
from export.model.search import (
    Search,
    SearchSettings,
    clear_empty,
    is_empty_source,
    limits_of,
)
from export.model.sentence_splitting import find_unknown_symbols
from export.model.signature_inputs import DEFAULT_SIGNATURES, INPUTS
from export.model.tokenized_model import TextModel
from keras_transformer import Transformer
from keras_transformer.special_ids import EOS_ID, PADDING_ID
from text_processing.language_tags import LanguageTags


class Translator(tf.Module):
    """Transformers, their tokenizer and beam search as `tf.function`s.

    Strings are UTF-8. A text without any token gives `""` with score 0, and
    one that is longer than `sequence_length` is cut. Sentences of a batch do
    not affect each other.

    Args:
        transformers: A built `Transformer`, or several: an ensemble, whose
            probabilities are the means of theirs.
        protos: As in `TextModel`.
        settings: The `SearchSettings`.
        names: Names of the signatures, of `INPUTS`.
        languages: As in `TextModel`. A language with several codes is an input of
            the signatures.

    Attributes:
        signatures: Dict from the name of a signature to its `tf.function`.
        precision: String, the type of weights and products.

    Raises:
        ValueError: If a vocabulary of the tokenizer exceeds a model's, if
            there is no layer `settings.align_layer`, or if an ensemble has
            vocabularies of different sizes or the signature `explain`.
    """

    def __init__(
        self,
        transformers: Transformer | Sequence[Transformer],
        protos: tuple[bytes, bytes | None],
        settings: SearchSettings,
        names: Iterable[str] = DEFAULT_SIGNATURES,
        languages: LanguageTags | None = None,
    ):
        super().__init__(name="translator")
        self._model = TextModel(transformers, protos, languages)
        # Not tracked, as a dict would be.
        self._languages = lambda: languages
        transformers = self._model.transformers
        check_ensemble(transformers, names)
        self.settings = settings
        self.tokenizer = self._model.tokenizer
        self._symbols = find_unknown_symbols(
            lambda texts: self.tokenizer.tokenize(texts).to_list()
        )
        self.sequence_length = self._model.sequence_length
        self.precision = transformers[0].dtype_policy.name
        self._search = Search(
            transformers,
            self.tokenizer.vocabulary_size,
            settings,
            self._model.languages.num_target,
        )
        decoder = ForcedDecoder(self._model, settings)
        methods = {
            "serving_default": self.translate,
            "translate_nbest": self._make_nbest(),
            "score": decoder.score,
            "align": decoder.align,
            "explain": decoder.explain,
        }
        signatures = {
            name: tf.function(
                self._model.languages.add_inputs(
                    methods.get(name) or getattr(self, name)
                ),
                input_signature=[*self._model.languages.inputs, *INPUTS[name]],
                autograph=False,
            )
            for name in names
        }
        # Not tracked, since a SavedModel traces each tracked function.
        self._signatures = lambda: signatures

    @property
    def signatures(self):
        return self._signatures()

    @property
    def languages(self):
        return self._languages()

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences by beam search.

        Returns:
            Dict of `"translation"`, string `(B,)`; `"score"`, float32 `(B,)`,
            the log-probability over the length penalty; and `"truncated"`,
            bool `(B,)`: whether source or translation was cut at its limit.
        """
        return self._describe(text, self._search)

    def _describe(self, text, search, prefix_ids=None, was_cut=False):
        """Returns the outputs of the best translation of each text.

        `search` returns the `Hypotheses` of ids, lengths and prefixes; `None` are
        those of the languages. Texts that `was_cut` are truncated in any case.
        """
        source_ids, lengths, cut = self._model.tokenize(text)
        if prefix_ids is None:
            prefix_ids = self._model.languages.tags.target
        found = search(source_ids, lengths, prefix_ids=prefix_ids)
        found = clear_empty(found, lengths, cut | was_cut)
        return {
            "translation": self._model.detokenize(found.ids)[:, 0],
            "score": found.scores[:, 0],
            "truncated": found.truncated[:, 0],
        }

    def _make_nbest(self):
        """Makes `translate_nbest`; its defaults become the signature's."""
        beams = tf.constant(self.settings.beam_size)
        alpha = tf.constant(self.settings.length_penalty, tf.float32)
        most = tf.constant(self.settings.max_extra_length)

        def translate_nbest(
            text, beam_size=beams, length_penalty=alpha, max_extra_length=most
        ):
            """Finds the best translations of each sentence, best first.

            More beams than those of the settings must fit in their budget with
            the longest row. Where `"valid"`, bool `(B, K)`, is False, there is
            no further translation.
            """
            text, beam_size, length_penalty, extra = with_checked_options(
                text,
                beam_size=beam_size,
                length_penalty=length_penalty,
                max_extra_length=max_extra_length,
            )
            source_ids, lengths, cut = self._model.tokenize(text)
            extra = tf.minimum(extra, most)
            beam_size = check_beams(
                beam_size,
                count_positions(lengths, limits_of(lengths, extra)),
                self.settings,
            )
            options = dataclasses.replace(
                self._search.options,
                beam_size=beam_size,
                length_penalty=length_penalty,
                num_hypotheses=None,
            )
            prefix_ids = self._model.languages.tags.target
            found = self._search(source_ids, lengths, options, extra, prefix_ids)
            cleared = clear_empty(found, lengths, cut)
            return {
                "translation": self._model.detokenize(cleared.ids),
                "score": cleared.scores,
                "length": cleared.lengths,
                "truncated": cleared.truncated,
                "valid": found.lengths > 0,
            }

        return translate_nbest

    def translate_options(self, text, length_penalty, max_extra_length, prefix):
        """Like `translate`, with options for each sentence.

        A translation begins with its `prefix` as the tokenizer reads it: in
        Unicode's form NFKC and without blanks at its ends. The output
        `"error"`, string `(B,)`, is a message about a sentence's options, or
        `""`. A sentence in error has no translation, and does not affect the
        others.
        """
        text, options, error = with_invalid_rows_blanked(
            text,
            length_penalty=length_penalty,
            max_extra_length=max_extra_length,
            prefix=prefix,
        )
        prefix_ids, least, was_cut = self._model.tokenize_targets(options["prefix"])
        prefix_ids = tf.where(prefix_ids == EOS_ID, PADDING_ID, prefix_ids)
        search = functools.partial(
            self._search,
            options=dataclasses.replace(
                self._search.options, length_penalty=options["length_penalty"]
            ),
            max_extra_length=options["max_extra_length"],
            least=least,
        )
        return {**self._describe(text, search, prefix_ids, was_cut), "error": error}

    def sample(self, text, temperature, top_k, top_p, seed):
        """Samples a translation of each sentence, as `Sampling` describes.

        A sample depends only on its text, options and seed. The outputs are
        those of `translate_options`.
        """
        text, sampling, error = with_invalid_rows_blanked(
            text, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
        )
        sampling["seeds"] = sampling.pop("seed")
        search = functools.partial(self._search.sample, **sampling)
        return {**self._describe(text, search), "error": error}

    def translate_document(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates documents: their sentences, not the text between them.

        Symbols that the vocabulary lacks divide sentences. The outputs are those
        of `translate`; `"score"` is the sentences' mean.
        """
        languages = self._model.languages

        def translate(sentences, documents):
            with languages.of_rows(documents):
                return self.translate(sentences)

        return translate_documents(
            text,
            self.settings.source_language,
            self._symbols,
            self.sequence_length - languages.num_source - 1,
            self._model.is_too_long,
            translate,
        )

    def explain_beam(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the candidates of `translate_nbest` in each step.

        See `describe_trace`.
        """
        source_ids, lengths, _ = self._model.tokenize(text)
        limits = limits_of(lengths, self.settings.max_extra_length)
        source_ids, lengths = within_beam_positions(
            (source_ids, lengths),
            self.settings.budget,
            self.settings.beam_size,
            count_positions(lengths, limits),
        )
        languages = self._model.languages
        found = describe_trace(
            self._search.trace(source_ids, lengths, languages.tags.target),
            is_empty_source(lengths),
            self._search.options,
            self.tokenizer.id_to_piece,
        )
        return {name: x[:, languages.num_target :] for name, x in found.items()}


def check_ensemble(transformers: tuple[Transformer, ...], names: Iterable[str]):
    """Refuses models whose probabilities have no mean."""
    sizes = {transformer.vocabulary_size for transformer in transformers}
    if len(sizes) > 1:
        raise ValueError(
            "the models of an ensemble must have vocabularies of one size. "
            f"Received: {', '.join(map(str, sorted(sizes)))}"
        )
    if len(transformers) > 1 and "explain" in names:
        raise ValueError(
            "an ensemble must be without the signature explain, the attention "
            f"of one model. Received: {len(transformers)} models"
        )
