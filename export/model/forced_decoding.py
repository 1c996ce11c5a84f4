"""Teacher-forced scoring, alignment and attention of given translations."""

import math
from typing import NamedTuple

import tensorflow as tf

from export.model.request_splitting import MAX_NUMBERS, in_chunks
from export.model.request_validation import with_equal_rows, within_budget
from export.model.search import SearchSettings, count_tokens
from export.model.tokenized_model import TextModel
from keras_transformer import Transformer
from keras_transformer.masks import padding_mask
from keras_transformer.search.options import length_penalty_of
from keras_transformer.special_ids import BOS_ID, PADDING_ID


class Pairs(NamedTuple):
    """Ids of texts and of their translations."""

    source_ids: tf.Tensor  # (B, S)
    labels: tf.Tensor  # (B, T)
    truncated: tf.Tensor  # (B,), whether one of the two was cut


class ForcedOutputs(NamedTuple):
    """Outputs of the model for pairs with given targets."""

    states: tf.Tensor  # (B, T, D)
    encoder_scores: tuple  # One tensor for each layer, (B, H, S, S).
    # One pair for each layer: self-attention, encoder-decoder.
    decoder_scores: tuple


def align_layer_of(transformer: Transformer, layer: int | None) -> int:
    """Returns the index of `SearchSettings.align_layer`, 0 or more."""
    layers = transformer.architecture.num_decoder_layers
    if layer is None:
        layer = transformer.architecture.alignment_layer
    if not -layers <= layer < layers:
        raise ValueError(
            f"`align_layer` must be between {-layers} and {layers - 1}. "
            f"Received: align_layer={layer}"
        )
    return layer % layers


def check_align_head(transformer: Transformer, head: int | None) -> None:
    """Refuses a `SearchSettings.align_head` that does not exist."""
    heads = transformer.architecture.num_heads
    if head is not None and not 0 <= head < heads:
        raise ValueError(
            f"`align_head` must be between 0 and {heads - 1}. "
            f"Received: align_head={head}"
        )


class ForcedDecoder:
    """Runs Transformers on pairs with given targets (teacher forcing).

    Of an ensemble, probabilities and alignments are means over its models. Outputs
    have no tags of languages.

    Raises:
        ValueError: If the layer `settings.align_layer` or its head
            `settings.align_head` does not exist.
    """

    def __init__(self, model: TextModel, settings: SearchSettings):
        self._model = model
        self._settings = settings
        self._num_source = model.languages.num_source
        self._num_target = model.languages.num_target
        for transformer in model.transformers:
            check_align_head(transformer, settings.align_head)
        self._align_layers = [
            align_layer_of(transformer, settings.align_layer)
            for transformer in model.transformers
        ]

    def score(self, source, target) -> dict[str, tf.Tensor]:
        """Scores translations, `target`, of `source`.

        After EOS come zeros and `""`.
        """
        pairs = self._read(source, target)
        lengths = [count_tokens(pairs.source_ids), count_tokens(pairs.labels)]

        def answer(rows):
            sources, targets = (
                tf.gather(ids, rows)[:, : tf.reduce_max(tf.gather(count, rows))]
                for ids, count in zip(pairs[:2], lengths, strict=True)
            )
            found = self._log_probabilities(targets, self._run(sources, targets))
            missing = tf.shape(pairs.labels)[1] - tf.shape(targets)[1]
            return tf.pad(found, [[0, 0], [0, missing]])

        # A chunk may hold a long source and, in another pair, a long target.
        longest = tf.maximum(*lengths)
        found = in_chunks(
            self._cost(longest, longest),
            MAX_NUMBERS,
            answer,
            blank=tf.zeros(tf.shape(pairs.labels[:, self._num_target :])),
        )
        return {
            "log_probability": tf.reduce_sum(found, axis=1),
            "score": self._penalize(found, pairs.labels),
            "token_log_probabilities": found,
            "tokens": self._pieces(pairs.labels),
            "truncated": pairs.truncated,
        }

    def align(self, source, target) -> dict[str, tf.Tensor]:
        """Aligns each token of the target with tokens of the source.

        The attention is that of the settings' head of a layer, or the mean over
        its heads, as the decoder predicts each target token; the alignment is
        its largest position, -1 after the target's end.
        """
        pairs = self._read_few(source, target, with_logits=False)
        found = self._run(pairs.source_ids, pairs.labels)
        # The attention to the source of each model, (B, H, T, S).
        attention = [
            outputs.decoder_scores[layer][1]
            for layer, outputs in zip(self._align_layers, found, strict=True)
        ]
        attention = mean(
            choose_head(tf.cast(of_model, tf.float32), self._settings)
            for of_model in attention
        )
        attention = attention[:, self._num_target :, self._num_source :]
        real = padding_mask(pairs.labels)[:, self._num_target :]
        attention = tf.where(real[:, :, None], attention, 0.0)
        places = tf.argmax(attention, axis=2, output_type=tf.int32)
        return {
            "attention": attention,
            "alignment": tf.where(real, places, -1),
            "source_tokens": self._source_pieces(pairs.source_ids),
            "target_tokens": self._pieces(pairs.labels),
            "truncated": pairs.truncated,
        }

    def explain(self, source, target) -> dict[str, tf.Tensor]:
        """Returns the attention of every layer and head (Section 3.2.3).

        Query `t` of the decoder's weights is the step that predicts target
        token `t`. Its keys are BOS, as key 0, and the target tokens before `t`,
        token `i` as key `i + 1`. The tag of a language that translations begin with
        is key 0 in the place of BOS. For a decoder with a recurrence instead of
        self-attention, these weights are zeros.

        After a text's end come zeros and `""`.
        """
        pairs = self._read_few(source, target)
        (outputs,) = self._run(pairs.source_ids, pairs.labels)
        to_target, to_source = zip(*outputs.decoder_scores, strict=True)
        if None in to_target:
            to_target = zero_attention(to_source)
        found = self._log_probabilities(pairs.labels, [outputs])
        real, n, m = padding_mask(pairs.labels), self._num_source, self._num_target
        of_sources = stack_attention(
            outputs.encoder_scores, padding_mask(pairs.source_ids)
        )
        return {
            "encoder_attention": of_sources[..., n:, n:],
            "decoder_attention": stack_attention(to_target, real)[..., m:, m:],
            "encoder_decoder_attention": stack_attention(to_source, real)[..., m:, n:],
            "source_tokens": self._source_pieces(pairs.source_ids),
            "target_tokens": self._pieces(pairs.labels),
            "token_log_probabilities": found,
            "score": self._penalize(found, pairs.labels),
            "truncated": pairs.truncated,
        }

    def _penalize(self, log_probabilities, labels):
        """Returns the score of each target, `(B,)`."""
        penalty = length_penalty_of(
            count_tokens(labels),
            self._settings.length_penalty,
            self._settings.penalty_offset,
        )
        return tf.reduce_sum(log_probabilities, axis=1) / penalty

    def _log_probabilities(self, labels, all_outputs):
        """Returns the log-probabilities of labels, 0 for padding, without tags."""
        found = []
        for transformer, outputs in zip(
            self._model.transformers, all_outputs, strict=True
        ):
            logits = transformer.compute_logits(outputs.states)
            logits = tf.cast(logits, tf.float32)
            found.append(
                -tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            )
        total = tf.reduce_logsumexp(tf.stack(found), axis=0)
        log_probabilities = total - math.log(len(found))
        found = tf.where(padding_mask(labels), log_probabilities, 0.0)
        return found[:, self._num_target :]

    def _pieces(self, labels):
        return self._model.pieces(labels[:, self._num_target :])

    def _source_pieces(self, source_ids):
        return self._model.source_pieces(source_ids[:, self._num_source :])

    def _read(self, source, target) -> Pairs:
        source, target = with_equal_rows(source=source, target=target)
        source_ids, _, source_cut = self._model.tokenize(source)
        labels, _, target_cut = self._model.tokenize_targets(target)
        return Pairs(source_ids, labels, source_cut | target_cut)

    def _read_few(self, source, target, with_logits=True) -> Pairs:
        """Like `_read`; refuses pairs whose outputs are too large."""
        pairs = self._read(source, target)
        count, longest = tf.unstack(tf.shape(pairs.source_ids))
        cost = self._cost(longest, tf.shape(pairs.labels)[1], with_logits)
        name = "the attention weights and logits of all rows"
        return within_budget(pairs, name, MAX_NUMBERS, count, cost)

    def _cost(self, sources, targets, with_logits=True):
        """Returns how many numbers the outputs of pairs have, int64."""
        source, target = tf.cast(sources, tf.int64), tf.cast(targets, tf.int64)
        cost = 0
        for transformer in self._model.transformers:
            a = transformer.architecture
            of_decoder = a.num_decoder_layers * (target**2 + source * target)
            cost += a.num_heads * (a.num_layers * source**2 + of_decoder)
            if with_logits:
                cost += transformer.vocabulary_size * target
        return cost

    # One graph for all signatures, since a server prepares each one separately.
    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2, autograph=False
    )
    def _run(self, source_ids, labels) -> list[ForcedOutputs]:
        """Runs each model on pairs."""
        begin = tf.fill([tf.shape(labels)[0], 1], BOS_ID)
        target_ids = tf.concat([begin, labels[:, :-1]], axis=1)
        target_ids = tf.where(padding_mask(labels), target_ids, PADDING_ID)
        found = []
        for transformer in self._model.transformers:
            memory, encoder_scores = transformer.encode(
                source_ids, training=False, return_attention_scores=True
            )
            states, decoder_scores = transformer.decode_states(
                target_ids,
                memory,
                padding_mask(source_ids),
                return_attention_scores=True,
                training=False,
            )
            found.append(ForcedOutputs(states, encoder_scores, decoder_scores))
        return found


def choose_head(attention, settings: SearchSettings, axis: int = 1):
    """Returns the attention of the head that aligns, or the mean over all."""
    if settings.align_head is None:
        return tf.reduce_mean(attention, axis)
    return tf.gather(attention, settings.align_head, axis=axis)


def mean(tensors):
    """Returns the mean of tensors; of one, itself."""
    first, *others = tensors
    return tf.add_n([first, *others]) / (1 + len(others)) if others else first


def stack_attention(scores, real) -> tf.Tensor:
    """Stacks the attention of all layers, `(B, N, H, T, S)`, 0 for padding."""
    stacked = tf.cast(tf.stack(scores, axis=1), tf.float32)
    return tf.where(real[:, None, None, :, None], stacked, 0.0)


def zero_attention(to_source) -> list[tf.Tensor]:
    """Returns zeros for the self-attention that a recurrent decoder lacks."""
    rows, _, length, _ = tf.unstack(tf.shape(to_source[0]))
    return [tf.zeros([rows, x.shape[1], length, length]) for x in to_source]
