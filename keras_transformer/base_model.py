"""Base class of the models: embedding, decoder, presets, training."""

import dataclasses
from typing import Any, ClassVar, Self

import keras

from keras_transformer.argument_checks import (
    check_choice,
    check_fraction,
    check_positive_int,
)
from keras_transformer.layers.composite_layer import CompositeMixin
from keras_transformer.layers.decoder import Decoder
from keras_transformer.layers.embedding import (
    PositionEmbedding,
    SinePositionEncoding,
    TokenEmbedding,
)
from keras_transformer.layers.encoder_decoder_base import HYPERPARAMETERS
from keras_transformer.losses import SmoothedCrossentropy
from keras_transformer.masks import padding_mask
from keras_transformer.metrics import Perplexity, TokenAccuracy
from keras_transformer.presets import Architecture, Preset, Recipe, find_preset
from keras_transformer.schedules import TransformerSchedule
from keras_transformer.search.compilation import CompiledSearches

POSITIONS = ("sine", "learned")
BASE, RECIPE = Architecture(), Recipe()


class BaseModel(CompositeMixin, keras.Model):
    """Base class of `Transformer` and `LanguageModel`, with their arguments.

    A subclass makes its other layers in the order of their saved weights. Its
    `make_input_specs` specifies the inputs of `call` for `export`,
    `check_inputs` refuses others, and `call_form` says what they are.
    """

    arguments_of_parts: ClassVar = {
        field.name: f"`{field.name}` of `Architecture` and `from_preset`"
        for field in dataclasses.fields(Architecture)
    }

    def __init__(
        self,
        vocabulary_size: int,
        architecture: Architecture = BASE,
        sequence_length: int = 512,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.autocast = False  # A short float dtype would change ids.
        if not isinstance(architecture, Architecture):
            raise ValueError(
                "`architecture` must be an `Architecture`; `from_preset` takes the "
                f"name of a preset. Received: architecture={architecture!r}"
            )
        check_choice("positions", architecture.positions, POSITIONS)
        check_fraction("dropout", architecture.dropout)
        if architecture.positions == "learned" and architecture.position_offset:
            raise ValueError(
                "`position_offset` must be 0 with learned positions. "
                f"Received: position_offset={architecture.position_offset!r}"
            )
        self.vocabulary_size = vocabulary_size
        self.architecture = architecture
        self.sequence_length = check_positive_int("sequence_length", sequence_length)
        self.compiled_searches = CompiledSearches()
        self.embedding = self.make_sublayer(
            TokenEmbedding,
            vocabulary_size,
            architecture.hidden_dim,
            architecture.scale_embedding,
            architecture.logits_bias and architecture.tied_output,
            name="embedding",
        )
        self.output_embedding = None
        if not architecture.tied_output:
            self.output_embedding = self.make_sublayer(
                TokenEmbedding,
                vocabulary_size,
                architecture.hidden_dim,
                logits_bias=architecture.logits_bias,
                name="output_embedding",
            )

    def __call__(self, *args, **kwargs):
        # In words and in one line, before Keras reads the arguments.
        if not self.overrides("call"):
            inputs = [*args, *(kwargs[name] for name in ("inputs",) if name in kwargs)]
            if len(inputs) != 1:
                raise ValueError(
                    f"{self.call_form}. Received: {len(inputs)} inputs, and "
                    f"{sorted(kwargs)} by name"
                )
            self.check_inputs(*inputs)
        return super().__call__(*args, **kwargs)

    def make_positions(self):
        """Makes the layer of position vectors (Section 3.5)."""
        numbers = self.architecture
        layer = SinePositionEncoding, numbers.max_wavelength, numbers.position_offset
        if numbers.positions == "learned":
            layer = PositionEmbedding, self.sequence_length
        return self.make_sublayer(*layer, name="position_encoding")

    def make_dropout(self, name):
        return self.make_sublayer(
            keras.layers.Dropout, self.architecture.dropout, name=name
        )

    def make_stack(self, stack_class, num_layers, name, **kwargs):
        """Makes an `Encoder` or a `Decoder`."""
        for argument in HYPERPARAMETERS:
            kwargs[argument] = getattr(self.architecture, argument)
        return self.make_sublayer(stack_class, num_layers, name=name, **kwargs)

    def make_decoder(self):
        return self.make_stack(
            Decoder,
            self.architecture.num_decoder_layers,
            name="decoder",
            mixer=self.architecture.decoder_mixer,
        )

    def export(self, filepath, *args, input_signature=None, **kwargs):
        """Exports the logits of `call`; see `keras.Model.export`."""
        if not self.built:
            self.build()
        if input_signature is None:
            input_signature = [self.make_input_specs()]
        super().export(filepath, *args, input_signature=input_signature, **kwargs)

    def build_layers(self, *layers_and_shapes):
        """Builds layers, each with the shapes after it; skips `None`."""
        with keras.name_scope(self.name):
            for layer, *shapes in layers_and_shapes:
                if layer is not None:
                    layer.build(*shapes)

    @classmethod
    def from_preset(cls, preset: str | Preset, vocabulary_size: int, **kwargs) -> Self:
        """Makes the model of a preset, such as a row of Table 3.

        Args:
            preset: A key of `PRESETS`, such as `"base"`, or a `Preset`.
            vocabulary_size: Positive int, ids of the shared vocabulary.
            **kwargs: Hyperparameters that replace the preset's, and other
                arguments of `Transformer`.

        Returns:
            A model with random weights.

        Raises:
            ValueError: If no preset has that name; the message suggests one.

        Example:
            >>> model = keras_transformer.Transformer.from_preset("tiny", 1000)
        """
        if not isinstance(preset, Preset):
            preset = find_preset(preset)
        numbers = {
            field.name: kwargs.pop(field.name)
            for field in dataclasses.fields(Architecture)
            if field.name in kwargs
        }
        architecture = dataclasses.replace(preset.architecture, **numbers)
        return cls(vocabulary_size, architecture, **kwargs)

    def build(self, input_shape=None):
        self.built = True

    def compute_logits(self, states: Any) -> Any:
        """Computes the logits, `(..., V)`, of states `(..., D)`.

        A subclass with another output layer overrides this method; training,
        `generate` and exports use it.
        """
        return self.embedding_of_logits(states, reverse=True)

    @property
    def embedding_of_logits(self):
        """The `TokenEmbedding` whose matrix and bias compute the logits."""
        return self.output_embedding or self.embedding

    def decode_states(
        self,
        target_ids: Any,
        memory: Any = None,
        memory_mask: Any = None,
        cache: Any = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """Runs the decoder like `decode`, but without computing the logits.

        The arguments are those of `decode`.

        Returns:
            Float tensor `(B, T, D)`; with `return_attention_scores`, a tuple of
            it and a pair of attention weights for each layer; with a cache, a
            tuple that ends in the longer cache. `compute_logits(states)` are
            the logits.
        """
        start_index = 0 if cache is None else cache.length
        return self.decoder(
            self._embed(
                target_ids, self.embedding, self.target_dropout, training, start_index
            ),
            memory,
            target_mask=padding_mask(target_ids),
            memory_mask=memory_mask,
            cache=cache,
            return_attention_scores=return_attention_scores,
            training=training,
        )

    def _embed(self, ids, embedding, dropout, training, start_index=0):
        """Returns embeddings plus positions."""
        x = embedding(ids, training=training)
        x = x + self.position_encoding(x, start_index=start_index)
        return dropout(x, training=training)

    def compile_as_published(
        self, recipe: Recipe | Preset | str = RECIPE, **kwargs
    ) -> None:
        """Compiles with the optimizer, schedule and loss of Section 5.

        Args:
            recipe: A `Recipe`, or a preset or its name, such as `"tiny"`.
            **kwargs: Arguments of `compile` that replace these.

        Example:
            >>> model = keras_transformer.Transformer.from_preset("tiny", 1000)
            >>> model.compile_as_published("tiny")
        """
        if isinstance(recipe, str):
            recipe = find_preset(recipe)
        if isinstance(recipe, Preset):
            recipe = recipe.recipe
        schedule = TransformerSchedule(
            self.architecture.hidden_dim, recipe.warmup_steps
        )
        published = {
            "optimizer": keras.optimizers.Adam(
                schedule, beta_1=0.9, beta_2=0.98, epsilon=1e-9
            ),
            "loss": SmoothedCrossentropy(recipe.label_smoothing),
            "metrics": [TokenAccuracy(), Perplexity()],
        }
        self.compile(**{**published, **kwargs})

    def overrides(self, *names):
        """Returns the names of the methods that a user's subclass overrides."""
        classes = type(self).__mro__
        own = classes[classes.index(BaseModel) - 1]  # Such as `Transformer`.
        return [
            name
            for name in names
            if getattr(type(self), name, None) != getattr(own, name, None)
        ]

    def get_config(self):
        numbers = dataclasses.asdict(self.architecture)
        if not isinstance(numbers["activation"], str):
            activation = keras.activations.serialize(numbers["activation"])
            numbers["activation"] = activation
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "architecture": numbers,
            "sequence_length": self.sequence_length,
        }

    @classmethod
    def from_config(cls, config, **kwargs):
        config = dict(config)
        numbers = config.pop("architecture")
        if not isinstance(numbers["activation"], str):
            activation = keras.activations.get(numbers["activation"])
            numbers = {**numbers, "activation": activation}
        config["architecture"] = Architecture(**numbers)
        return super().from_config(config, **kwargs)


def ids_spec(name):
    return keras.InputSpec(dtype="int32", shape=(None, None), name=name)
