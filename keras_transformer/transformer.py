"""The whole model (Vaswani et al., 2017, Figure 1)."""

import os
from typing import Any

import keras
from keras import ops

from keras_transformer.argument_checks import (
    check_ids,
    check_run_file,
    check_search_int,
    ids_tensor,
)
from keras_transformer.base_model import BASE, BaseModel, ids_spec
from keras_transformer.layers.decoder import Decoder
from keras_transformer.layers.embedding import TokenEmbedding
from keras_transformer.layers.encoder import Encoder
from keras_transformer.masks import padding_mask
from keras_transformer.presets import Architecture
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.transformer_search import best_ids, search_translations
from keras_transformer.special_ids import BOS_ID, EOS_ID


@keras.saving.register_keras_serializable(package="keras_transformer")
class Transformer(BaseModel):
    """The encoder-decoder Transformer: pairs of id sequences to logits.

    `decode(target_ids, encode(source_ids))`, with one embedding matrix for
    sources, targets and logits (Section 3.4), and dropout on the sums of
    embeddings and positions (Section 5.4). Position `t` of the logits predicts
    the token that follows `target_ids[:, t]`, so train with targets that
    begin with BOS and labels that end with EOS.

    Args:
        vocabulary_size: Positive int, ids of the shared vocabulary, padding
            (id 0) included.
        architecture: `Architecture`, the hyperparameters of the model (default:
            the paper's base). `positions` is `"sine"`, or `"learned"`
            (Table 3, row E); `norm` is `"post"`, as published, or `"pre"`, see
            `Residual`.
        sequence_length: Positive int, number of learned positions; sines have
            no limit and ignore it.
        source_vocabulary_size: Positive int, ids of the sources if they have
            their own vocabulary and embedding matrix. `None` means that they
            share those of the targets.
        **kwargs: Arguments of `keras.Model`, such as `name` or `dtype`.

    Call arguments:
        inputs: Dict of int tensors `"source_ids"`, of shape `(B, S)`, and
            `"target_ids"`, of shape `(B, T)`, padded with 0 at the end; or a
            list of the two.
        training: Bool, whether dropout is on.

    Returns:
        Float tensor of logits `(B, T, V)` in the compute dtype.

    Masking:
        The model finds padding from the ids; you pass no mask. The logits have
        no mask: `SmoothedCrossentropy` finds padding from the labels. Keras's
        own cross-entropy counts padding, unless it is
        `SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)`, and so
        does `metrics=["accuracy"]`; `TokenAccuracy` does not.

    Raises:
        ValueError: If an argument is out of its range, or an id is outside of the
            vocabulary and its value is known, as outside of a compiled step. In
            `fit`, TensorFlow on a CPU raises an error of its own, torch an
            `IndexError`, and JAX gives NaN.

    Example:
        >>> model = keras_transformer.Transformer.from_preset("tiny", 1000)
        >>> ids = np.array([[7, 5, 1]])
        >>> keras.ops.shape(model({"source_ids": ids, "target_ids": ids}))
        (1, 3, 1000)
    """

    call_form = (
        "Call it as `model([source_ids, target_ids])`, or with the dict "
        "`{'source_ids': source_ids, 'target_ids': target_ids}`"
    )

    def __init__(
        self,
        vocabulary_size: int,
        architecture: Architecture = BASE,
        sequence_length: int = 512,
        source_vocabulary_size: int | None = None,
        **kwargs,
    ):
        super().__init__(vocabulary_size, architecture, sequence_length, **kwargs)
        self.source_vocabulary_size = source_vocabulary_size
        self.source_embedding = None
        if source_vocabulary_size is not None:
            self.source_embedding = self.make_sublayer(
                TokenEmbedding,
                source_vocabulary_size,
                architecture.hidden_dim,
                architecture.scale_embedding,
                name="source_embedding",
            )
        self.position_encoding = self.make_positions()
        self.source_dropout = self.make_dropout("source_dropout")
        self.target_dropout = self.make_dropout("target_dropout")
        self.encoder = self.make_stack(Encoder, architecture.num_layers, name="encoder")
        self.decoder = self.make_decoder()
        states = (None, None, architecture.hidden_dim)
        self.build_layers(
            [self.embedding],
            [self.output_embedding],
            [self.source_embedding],
            [self.position_encoding, states],
            [self.encoder, states],
            [self.decoder, states, states],
        )
        if type(self) is Transformer:  # Subclasses may add layers.
            self.build()

    @classmethod
    def from_pretrained(cls, run_dir: str | os.PathLike) -> "Transformer":
        """Reads the model of a run folder.

        Args:
            run_dir: Path of the folder that `train` or `convert` wrote.

        Returns:
            A built `Transformer`, not compiled.

        Raises:
            ValueError: If the folder has no finished model.
        """
        path = check_run_file(run_dir, "model.keras")
        return keras.saving.load_model(path, compile=False)

    def call(self, inputs, training=None):
        source_ids, target_ids = self.split_inputs(inputs)
        memory = self.encode(source_ids, training=training)
        return self.decode(
            target_ids, memory, padding_mask(source_ids), training=training
        )

    def split_inputs(self, inputs):
        """Returns the ids of sources and targets of the inputs of `call`."""
        names = ("source_ids", "target_ids")
        if isinstance(inputs, dict):
            if missing := [name for name in names if name not in inputs]:
                raise ValueError(
                    f"`inputs` must have the keys {' and '.join(names)}. "
                    f"Received: {sorted(inputs)}, without {' and '.join(missing)}"
                )
            inputs = [inputs[name] for name in names]
        if not isinstance(inputs, list | tuple) or len(inputs) != 2:
            raise ValueError(f"{self.call_form}. Received: {type(inputs).__name__}")
        for name, ids, size in zip(
            names, inputs, (self.num_source_ids, self.vocabulary_size), strict=True
        ):
            check_ids(name, ids, size)
        source_ids, target_ids = inputs
        batches = source_ids.shape[0], target_ids.shape[0]
        if None not in batches and batches[0] != batches[1]:
            raise ValueError(
                "`source_ids` and `target_ids` must have as many rows. "
                f"Received: {batches[0]} and {batches[1]}"
            )
        return source_ids, target_ids

    check_inputs = split_inputs

    def encode(
        self,
        source_ids: Any,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """Runs the encoder (left of Figure 1).

        Args:
            source_ids: Int tensor `(B, S)`, padded with 0.
            training: Bool, whether dropout is on.
            return_attention_scores: Bool, whether to return the weights too.

        Returns:
            Float tensor `(B, S, D)`, the memory, `z` in the paper; with
            `return_attention_scores`, a tuple of it and the attention weights
            of each layer, `(B, H, S, S)`.
        """
        return self.encoder(
            self._embed(
                source_ids, self.embedding_of_sources, self.source_dropout, training
            ),
            mask=padding_mask(source_ids),
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def decode(
        self,
        target_ids: Any,
        memory: Any = None,
        memory_mask: Any = None,
        cache: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Runs the decoder and the softmax's linear map (right of Figure 1).

        Args:
            target_ids: Int tensor `(B, T)`, padded with 0. With a cache, the
                tokens that follow those it holds.
            memory: Float tensor `(B, S, D)`, the output of `encode`; ignored
                with a cache, which holds its keys and values.
            memory_mask: Bool tensor `(B, S)`, False where the source is
                padding.
            cache: Result of `decoder.make_cache` or of the previous call.
            training: Bool, whether dropout is on.

        Returns:
            Logits `(B, T, V)`; with a cache, a tuple of them and the longer
            cache.
        """
        states = self.decode_states(target_ids, memory, memory_mask, cache, training)
        if cache is None:
            return self.compute_logits(states)
        states, cache = states
        return self.compute_logits(states), cache

    def generate(
        self,
        source_ids: Any,
        beam_size: int = 4,
        length_penalty: float = 0.6,
        max_extra_length: int = 50,
        bos_id: int = BOS_ID,
        eos_id: int = EOS_ID,
    ) -> Any:
        """Translates by beam search, by default as in Section 6.1.

        It calls `search_translations`, which TensorFlow and JAX compile once.

        Args:
            source_ids: Int tensor or array `(B, S)`, padded with 0. Only the
                result of a row of padding alone depends on `S`.
            beam_size: Positive int; 1 is greedy search.
            length_penalty: Float, `α`.
            max_extra_length: Int, 0 or more, maximum length of a translation
                minus the length of its source, both with EOS.
            bos_id: Int, the token with which targets begin.
            eos_id: Int, the token with which they end.

        Returns:
            Int32 tensor `(B, L)`: the best translation of each source with EOS,
            then padding; `L` is the length of the longest, but in a function
            that JAX compiles the limit.

        Example:
            >>> model = keras_transformer.Transformer.from_preset("tiny", 1000)
            >>> ids = model.generate(np.array([[7, 5, 1]]), max_extra_length=4)
            >>> keras.ops.shape(ids)[1] <= 3 + 4
            True
        """
        check_search_int("max_extra_length", max_extra_length)
        source_ids = ids_tensor("source_ids", source_ids, self.num_source_ids)
        lengths = ops.sum(ops.cast(padding_mask(source_ids), "int32"), axis=1)
        options = SearchOptions(
            beam_size, length_penalty, num_hypotheses=1, bos_id=bos_id, eos_id=eos_id
        )
        hypotheses = search_translations(
            self,
            source_ids,
            ops.maximum(lengths + max_extra_length, 1),
            options,
            max_length=ops.shape(source_ids)[1] + max_extra_length,
        )
        return best_ids(hypotheses)

    @property
    def embedding_of_sources(self):
        """The `TokenEmbedding` of the sources, which may be the shared one."""
        return self.source_embedding or self.embedding

    @property
    def num_source_ids(self):
        """The size of the sources' vocabulary, which may be the shared one."""
        return self.source_vocabulary_size or self.vocabulary_size

    def custom_parts(self):
        """Returns the names of the methods and layers that are replaced.

        What reads the weights, without calling the model, would ignore them.
        """
        layers = {
            "embedding": TokenEmbedding,
            "embedding_of_sources": TokenEmbedding,
            "embedding_of_logits": TokenEmbedding,
            "encoder": Encoder,
            "decoder": Decoder,
        }
        methods = "call", "encode", "decode", "decode_states", "compute_logits"
        return self.overrides(*methods) + [
            name
            for name, layer_class in layers.items()
            if type(getattr(self, name)) is not layer_class
        ]

    def make_input_specs(self):
        return {name: ids_spec(name) for name in ("source_ids", "target_ids")}

    def compute_output_shape(self, input_shape):
        if isinstance(input_shape, dict):
            input_shape = input_shape["source_ids"], input_shape["target_ids"]
        return (*input_shape[1], self.vocabulary_size)

    def get_config(self):
        return {
            **super().get_config(),
            "source_vocabulary_size": self.source_vocabulary_size,
        }
