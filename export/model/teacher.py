"""Questions about given translations: how likely, and what looks at what."""

from typing import NamedTuple

import tensorflow as tf

from export.model.explanations import stack_scores
from export.model.request_checks import with_equal_rows
from export.model.search import SearchSettings
from export.model.text_model import TextModel
from export.model.text_model import strings
from keras_transformer.masks import BEGIN_ID
from keras_transformer.masks import PADDING_ID
from keras_transformer.masks import padding_mask
from keras_transformer.search.options import length_penalty_of


class Taught(NamedTuple):
    """What the model makes of pairs whose targets are given."""

    source_ids: tf.Tensor  # (B, S)
    labels: tf.Tensor  # (B, T)
    source_truncated: tf.Tensor  # (B,)
    target_truncated: tf.Tensor  # (B,)
    states: tf.Tensor  # (B, T, D)
    encoder_scores: tuple  # A tensor a layer, (B, H, S, S).
    decoder_scores: tuple  # A pair a layer: to the target, to the source.


class Teacher(tf.Module):
    """Runs a Transformer on pairs, as in training: targets are given.

    Args:
        model: The `TextModel`.
        settings: Whose length penalty scores, and whose layer aligns.

    Raises:
        ValueError: If there is no layer `settings.align_layer`.
    """

    def __init__(self, model: TextModel, settings: SearchSettings):
        super().__init__(name="teacher")
        self._model = model
        self._length_penalty = settings.length_penalty
        layers = model.transformer.architecture.num_layers
        layer = settings.align_layer
        if layer is None:
            layer = max(0, layers - 2)
        if not -layers <= layer < layers:
            raise ValueError(
                f"`align_layer` must be between {-layers} and {layers - 1}. "
                f"Received: align_layer={layer}"
            )
        self._align_layer = layer

    @tf.function(
        input_signature=[strings("source"), strings("target")], autograph=False
    )
    def score(self, source, target) -> dict[str, tf.Tensor]:
        """Scores given translations.

        Args:
            source: String tensor `(B,)`.
            target: String tensor `(B,)`, its translations.

        Returns:
            Dict of `"log_probability"`, float32 `(B,)`, of the whole target
            and its end; `"token_log_probabilities"`, float32 `(B, T)`, of each
            token; `"tokens"`, string `(B, T)`, the pieces; and `"truncated"`,
            bool `(B,)`: whether source or target was cut at the model's limit.
            After the end symbol come zeros and `""`.
        """
        taught = self._teach(source, target)
        found = self._log_probabilities(taught)
        return {
            "log_probability": tf.reduce_sum(found, axis=1),
            "token_log_probabilities": found,
            "tokens": self._model.pieces(taught.labels),
            "truncated": taught.source_truncated | taught.target_truncated,
        }

    @tf.function(
        input_signature=[strings("source"), strings("target")], autograph=False
    )
    def align(self, source, target) -> dict[str, tf.Tensor]:
        """Says which tokens of the source each token of the target looks at.

        Args:
            source: String tensor `(B,)`.
            target: String tensor `(B,)`, its translations.

        Returns:
            Dict of `"attention"`, float32 `(B, T, S)`, the mean over the heads
            of a layer, as the decoder predicts each target token;
            `"alignment"`, int32 `(B, T)`, where it is largest, -1 after the
            target's end; `"source_tokens"`, string `(B, S)`, and
            `"target_tokens"`, string `(B, T)`, the pieces; and `"truncated"`,
            bool `(B,)`: whether source or target was cut at the model's limit.
        """
        taught = self._teach(source, target)
        _, attention = taught.decoder_scores[self._align_layer]
        attention = tf.reduce_mean(tf.cast(attention, tf.float32), axis=1)
        real = padding_mask(taught.labels)
        attention = tf.where(real[:, :, None], attention, 0.0)
        places = tf.argmax(attention, axis=2, output_type=tf.int32)
        return {
            "attention": attention,
            "alignment": tf.where(real, places, -1),
            "source_tokens": self._model.pieces(taught.source_ids),
            "target_tokens": self._model.pieces(taught.labels),
            "truncated": taught.source_truncated | taught.target_truncated,
        }

    @tf.function(
        input_signature=[strings("source"), strings("target")], autograph=False
    )
    def explain(self, source, target) -> dict[str, tf.Tensor]:
        """Shows the attention of every layer and head (Section 3.2.3).

        Row `t` of the decoder's weights is the step that predicts target token
        `t`. It sees the begin symbol, as key 0, and the target tokens before
        `t`, each one key further.

        Args:
            source: String tensor `(B,)`.
            target: String tensor `(B,)`, its translations.

        Returns:
            Dict of the attention weights, float32: `"encoder_attention"`, `(B,
            N, H, S, S)`, `"decoder_attention"`, `(B, N, H, T, T)`, and
            `"encoder_decoder_attention"`, `(B, N, H, T, S)`; of
            `"source_tokens"`, string `(B, S)`, and `"target_tokens"`, string
            `(B, T)`, the pieces; of `"token_log_probabilities"`, float32 `(B,
            T)`; of `"score"`, float32 `(B,)`, the log-probability of the whole
            target over its length penalty; and of `"target_truncated"`, bool
            `(B,)`: whether the target was cut at the model's limit. After a
            text's end come zeros and `""`.
        """
        taught = self._teach(source, target)
        to_target, to_source = zip(*taught.decoder_scores, strict=True)
        found = self._log_probabilities(taught)
        real = padding_mask(taught.labels)
        length = tf.reduce_sum(tf.cast(real, tf.int32), axis=1)
        penalty = length_penalty_of(length, self._length_penalty)
        return {
            "encoder_attention": stack_scores(
                taught.encoder_scores, padding_mask(taught.source_ids)
            ),
            "decoder_attention": stack_scores(to_target, real),
            "encoder_decoder_attention": stack_scores(to_source, real),
            "source_tokens": self._model.pieces(taught.source_ids),
            "target_tokens": self._model.pieces(taught.labels),
            "token_log_probabilities": found,
            "score": tf.reduce_sum(found, axis=1) / penalty,
            "target_truncated": taught.target_truncated,
        }

    def _log_probabilities(self, taught):
        """Returns that of each label, `(B, T)`, and 0 of padding."""
        logits = self._model.transformer.embedding(taught.states, reverse=True)
        logits = tf.cast(logits, tf.float32)
        found = -tf.nn.sparse_softmax_cross_entropy_with_logits(
            taught.labels, logits
        )
        return tf.where(padding_mask(taught.labels), found, 0.0)

    # One graph for all that is asked of pairs: a server prepares each apart.
    @tf.function(
        input_signature=[strings("source"), strings("target")], autograph=False
    )
    def _teach(self, source, target) -> Taught:
        """Runs the model on pairs."""
        source, target = with_equal_rows(source=source, target=target)
        transformer = self._model.transformer
        source_ids, _, source_truncated = self._model.tokenize(source)
        labels, _, target_truncated = self._model.tokenize(target)
        begin = tf.fill([tf.shape(labels)[0], 1], BEGIN_ID)
        target_ids = tf.concat([begin, labels[:, :-1]], axis=1)
        target_ids = tf.where(padding_mask(labels), target_ids, PADDING_ID)
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
        return Taught(
            source_ids,
            labels,
            source_truncated,
            target_truncated,
            states,
            encoder_scores,
            decoder_scores,
        )
