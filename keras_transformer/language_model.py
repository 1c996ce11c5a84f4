"""A decoder-only language model of the same layers (Section 3.1)."""

from typing import Any

import keras
from keras import ops

from keras_transformer.argument_checks import (
    check_ids,
    check_length,
    check_search_int,
    ids_tensor,
)
from keras_transformer.base_model import BASE, BaseModel, ids_spec
from keras_transformer.masks import padding_mask
from keras_transformer.presets import Architecture
from keras_transformer.search.beam_search import beam_search
from keras_transformer.search.compilation import compiled_call
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.transformer_search import best_ids, check_model
from keras_transformer.special_ids import BOS_ID, EOS_ID


@keras.saving.register_keras_serializable(package="keras_transformer")
class LanguageModel(BaseModel):
    """The decoder alone: id sequences to the logits of each next token.

    Position `t` of the logits predicts the token that follows `ids[:, t]`, from
    it and earlier ones. For `generate`, train with inputs that begin with BOS.

    Args:
        vocabulary_size: Positive int, number of ids, padding (id 0) included.
        architecture: `Architecture`; the decoder's layers are used.
        sequence_length: Positive int, number of learned positions; sines have
            no limit and ignore it.
        **kwargs: Arguments of `keras.Model`, such as `name` or `dtype`.

    Call arguments:
        inputs: Int tensor `(B, T)`, padded with 0 at the end.
        training: Bool, whether dropout is on.

    Returns:
        Float tensor of logits `(B, T, V)` in the compute dtype.

    Masking:
        As of `Transformer`.

    Raises:
        ValueError: If an argument is out of its range.

    Example:
        >>> model = keras_transformer.LanguageModel.from_preset("tiny", 1000)
        >>> keras.ops.shape(model(np.array([[3, 7, 5]])))
        (1, 3, 1000)
    """

    call_form = "Call it as `model(ids)`"

    def __init__(
        self,
        vocabulary_size: int,
        architecture: Architecture = BASE,
        sequence_length: int = 512,
        **kwargs,
    ):
        super().__init__(vocabulary_size, architecture, sequence_length, **kwargs)
        self.position_encoding = self.make_positions()
        self.target_dropout = self.make_dropout("target_dropout")
        self.decoder = self.make_decoder()
        states = (None, None, architecture.hidden_dim)
        self.build_layers(
            [self.embedding],
            [self.output_embedding],
            [self.position_encoding, states],
            [self.decoder, states],
        )
        if type(self) is LanguageModel:  # Subclasses may add layers.
            self.build()

    def call(self, inputs, training=None):
        return self.compute_logits(self.decode_states(inputs, training=training))

    def check_inputs(self, inputs):
        check_ids("inputs", inputs, self.vocabulary_size)

    def make_input_specs(self):
        return ids_spec("ids")

    def generate(
        self,
        prompt_ids: Any,
        beam_size: int = 1,
        length_penalty: float = 0.0,
        max_extra_length: int = 50,
        bos_id: int = BOS_ID,
        eos_id: int = EOS_ID,
    ) -> Any:
        """Continues prompts by beam search (Section 6.1).

        TensorFlow and JAX compile it at the first call. For sampling, see
        `sample` and `decode_step`.

        Args:
            prompt_ids: Int tensor or array `(B, P)`, padded with 0 at the end,
                without BOS and EOS; `P` may be 0.
            beam_size: Positive int; 1 is greedy search.
            length_penalty: Float, `α`, of the whole, prompt included.
            max_extra_length: Int, 0 or more, maximum number of tokens after a
                prompt and before EOS.
            bos_id: Int, the token before the prompt.
            eos_id: Int, the token with which a text ends.

        Returns:
            Int32 tensor `(B, L)`: the prompt, its continuation, EOS, then
            padding, with `L` as of `Transformer.generate`.

        Example:
            >>> model = keras_transformer.LanguageModel.from_preset("tiny", 1000)
            >>> ids = model.generate(np.array([[7, 5]]), max_extra_length=4)
            >>> keras.ops.shape(ids)[1] <= 2 + 4 + 1
            True
        """
        check_search_int("max_extra_length", max_extra_length)
        prompt_ids = ids_tensor("prompt_ids", prompt_ids, self.vocabulary_size)
        if self.architecture.positions == "learned":
            # BOS is before it.
            check_length("prompt_ids", prompt_ids, self.sequence_length - 1)
        options = SearchOptions(
            beam_size, length_penalty, num_hypotheses=1, bos_id=bos_id, eos_id=eos_id
        )
        check_model(self, options)
        lengths = ops.sum(ops.cast(padding_mask(prompt_ids), "int32"), axis=1)
        tensors = {
            "prompt_ids": prompt_ids,
            "max_lengths": lengths + max_extra_length + 1,
        }
        max_length = ops.shape(prompt_ids)[1] + max_extra_length + 1
        hypotheses = compiled_call(self, continue_prompts, options, tensors, max_length)
        return best_ids(hypotheses)

    def decode_step(self, ids: Any, index: Any, cache: Any) -> tuple:
        """Decodes a position, as `next_step` of `beam_search` and `sample`.

        Args:
            ids: Int32 tensor `(B,)`, the tokens at the position.
            index: Ignored: the cache has the position.
            cache: Result of `decoder.make_cache` or of the previous step.

        Returns:
            Logits `(B, V)`, and the longer cache.
        """
        states, cache = self.decode_states(ids[:, None], cache=cache, training=False)
        return self.compute_logits(states[:, 0]), cache


def continue_prompts(model, prompt_ids, max_lengths, options, max_length):
    """Finds the best continuations by `beam_search`: `Hypotheses`."""
    if model.architecture.positions == "learned":
        max_lengths = ops.minimum(max_lengths, model.sequence_length)
    rows = ops.shape(prompt_ids)[0] * options.beam_size
    cache = model.decoder.make_cache(rows=rows, max_length=max_length)
    return beam_search(
        model.decode_step,
        cache,
        options,
        max_lengths,
        prompt_ids,
        max_length=max_length,
    )
