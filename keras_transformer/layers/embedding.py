"""Embeddings and positions (Vaswani et al., 2017, Sections 3.4 and 3.5)."""

import keras
from keras import ops

from keras_transformer.argument_checks import (
    KnownArguments,
    check_positive_int,
    check_positive_number,
    check_sequence_shape,
    check_vocabulary,
    known_values,
    static_int,
)
from keras_transformer.masks import padding_mask


@keras.saving.register_keras_serializable(package="keras_transformer")
class TokenEmbedding(KnownArguments, keras.layers.Layer):
    """One matrix for token embeddings and for the logits before the softmax.

    Computes `E[ids] * sqrt(d_model)` (Section 3.4) and, with `reverse`, the
    logits `h E^T`. Sharing one layer between both stacks and the output is
    the three-way weight tying of Section 3.4. The matrix starts from a normal
    distribution of standard deviation `d_model ** -0.5`, so that embeddings
    and logits both start with about unit variance.

    Args:
        vocabulary_size: Positive int, number of token ids. Id 0 is padding.
        hidden_dim: Positive int, features of an embedding, `d_model`.
        scale: Bool, whether embeddings are multiplied by `sqrt(d_model)`.
        logits_bias: Bool, whether the logits are `h E^T + b`. The paper's are
            not.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Int tensor `(B, T)` of ids in `[0, vocabulary_size)`; ids of a
            float dtype are cast. With `reverse`, float tensor of shape
            `(..., hidden_dim)`.
        reverse: Bool, whether to compute logits instead of embeddings.

    Returns:
        Float tensor `(B, T, hidden_dim)`, or logits of shape
        `(..., vocabulary_size)`, in the compute dtype.

    Masking:
        The mask of embeddings marks the ids that are not 0; logits have that
        of their inputs.

    Raises:
        ValueError: If `vocabulary_size` or `hidden_dim` is not a positive int.

    Example:
        >>> layer = keras_transformer.TokenEmbedding(1000, 512)
        >>> embeddings = layer(np.array([[7, 5, 0]]))
        >>> keras.ops.shape(layer(embeddings, reverse=True))
        (1, 3, 1000)
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        scale: bool = True,
        logits_bias: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = check_positive_int("vocabulary_size", vocabulary_size)
        self.hidden_dim = check_positive_int("hidden_dim", hidden_dim)
        self.scale = scale
        self.logits_bias = logits_bias
        self.supports_masking = True
        self.autocast = False  # A short float dtype would change ids.

    def build(self, input_shape=None):
        self.embeddings = self.add_weight(
            shape=(self.vocabulary_size, self.hidden_dim),
            initializer=keras.initializers.RandomNormal(stddev=self.hidden_dim**-0.5),
            name="embeddings",
        )
        self.bias = None
        if self.logits_bias:
            self.bias = self.add_weight(
                shape=(self.vocabulary_size,), initializer="zeros", name="bias"
            )

    def call(self, inputs, reverse=False, training=None):
        table = ops.cast(self.embeddings, self.compute_dtype)
        if reverse:
            states = ops.cast(inputs, self.compute_dtype)
            logits = ops.matmul(states, ops.transpose(table))
            if self.bias is None:
                return logits
            return logits + ops.cast(self.bias, self.compute_dtype)
        ids = ops.cast(inputs, "int32")
        if keras.backend.is_float_dtype(inputs.dtype):
            # Keras calls with floats to build the layer. With ints this sets
            # the mask.
            return self(ids, training=training)
        check_vocabulary("inputs", known_values(ids), self.vocabulary_size)
        scale = self.hidden_dim**0.5 if self.scale else 1.0
        scale = ops.cast(scale, table.dtype)
        if training:
            # A product has a dense gradient. The sparse gradient of a gather
            # lists an id once for each occurrence, and Keras's Adam squares the
            # entries before it adds them up.
            return ops.take(table * scale, ids, axis=0)
        return ops.take(table, ids, axis=0) * scale

    def compute_mask(self, inputs, mask=None):
        if keras.backend.is_float_dtype(inputs.dtype):
            return mask
        return padding_mask(inputs)

    def compute_output_shape(self, input_shape, reverse=False, training=None):
        if reverse:
            return (*input_shape[:-1], self.vocabulary_size)
        return (*input_shape, self.hidden_dim)

    def compute_output_spec(self, inputs, reverse=False, training=None):
        shape = self.compute_output_shape(inputs.shape, reverse)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "scale": self.scale,
            "logits_bias": self.logits_bias,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class SinePositionEncoding(KnownArguments, keras.layers.Layer):
    """Sines and cosines of many wavelengths, one vector for each position.

    Computes `PE[pos, 2i] = sin(pos / w^(2i / d_model))` and
    `PE[pos, 2i + 1] = cos(pos / w^(2i / d_model))` with `w = max_wavelength`
    (Section 3.5), in float32. The caller adds the result to the embeddings.

    Args:
        max_wavelength: Positive number, `w` above (10,000 in the paper): the
            wavelengths run from 2π to 2π times this.
        offset: Int, 0 or more, index of the first position. The paper's
            positions begin with 0, some other systems' with 1 or 2.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`. Only its shape matters.
        start_index: Int or int scalar tensor, position of the first vector.

    Returns:
        Float tensor `(B, T, D)` in the compute dtype.

    Masking:
        A mask passes through unchanged.

    Raises:
        ValueError: If `max_wavelength` is not positive, if `offset` is not an
            int of 0 or more, or if the last dimension of `inputs` is unknown
            when the layer is built.

    Example:
        >>> layer = keras_transformer.SinePositionEncoding()
        >>> embeddings = keras.ops.zeros((2, 7, 512))
        >>> outputs = embeddings + layer(embeddings)
    """

    def __init__(self, max_wavelength: float = 10_000, offset: int = 0, **kwargs):
        super().__init__(**kwargs)
        check_positive_number("max_wavelength", max_wavelength)
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(
                f"`offset` must be an int of 0 or more. Received: offset={offset!r}"
            )
        self.max_wavelength = max_wavelength
        self.offset = offset
        self.supports_masking = True

    def build(self, input_shape):
        check_sequence_shape("inputs", input_shape)

    def call(self, inputs, start_index=0):
        length, hidden_dim = ops.shape(inputs)[1], inputs.shape[-1]
        positions = ops.add(ops.arange(length), start_index) + self.offset
        positions = ops.cast(positions, "float32")
        exponents = ops.arange((hidden_dim + 1) // 2, dtype="float32")
        exponents = exponents * (2 / hidden_dim)
        rates = ops.power(float(self.max_wavelength), -exponents)
        angles = positions[:, None] * rates[None, :]  # (T, ⌈D/2⌉)
        pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
        table = ops.reshape(pairs, (length, 2 * rates.shape[0]))
        table = table[:, :hidden_dim]
        table = ops.cast(table, self.compute_dtype)
        return ops.broadcast_to(table[None], ops.shape(inputs))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "max_wavelength": self.max_wavelength,
            "offset": self.offset,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class PositionEmbedding(KnownArguments, keras.layers.Layer):
    """A learned vector for each position (Section 3.5; Table 3, row E).

    The caller adds the result to the embeddings. The vectors start like those
    of `TokenEmbedding`, normal with standard deviation `d_model ** -0.5`.

    Args:
        sequence_length: Positive int, number of positions.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` or `dtype`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`. Only its shape matters.
        start_index: Int or int scalar tensor, position of the first vector.
            `start_index + T` may not exceed `sequence_length`. On a backend
            that cannot raise an error, a tensor beyond it gives NaN.

    Returns:
        Float tensor `(B, T, D)` in the compute dtype.

    Masking:
        A mask passes through unchanged.

    Raises:
        ValueError: If `sequence_length` is not a positive int, if the last
            dimension of `inputs` is unknown when the layer is built, or if
            `start_index + T` is known and exceeds `sequence_length`.

    Example:
        >>> layer = keras_transformer.PositionEmbedding(sequence_length=256)
        >>> embeddings = keras.ops.zeros((2, 7, 512))
        >>> outputs = embeddings + layer(embeddings)
    """

    def __init__(self, sequence_length: int, **kwargs):
        super().__init__(**kwargs)
        self.sequence_length = check_positive_int("sequence_length", sequence_length)
        self.supports_masking = True

    def build(self, input_shape):
        check_sequence_shape("inputs", input_shape)
        self.embeddings = self.add_weight(
            shape=(self.sequence_length, input_shape[-1]),
            initializer=keras.initializers.RandomNormal(stddev=input_shape[-1] ** -0.5),
            name="embeddings",
        )

    def call(self, inputs, start_index=0):
        length = inputs.shape[1]
        known = static_int(start_index)
        first = known or 0
        # While JAX traces a model, a length may be a symbol.
        is_known = isinstance(length, int)
        if is_known and first + length > self.sequence_length:
            raise ValueError(
                f"`inputs` may have {self.sequence_length} positions at most "
                "(`sequence_length`). "
                f"Received: {length} positions from start_index={first} on"
            )
        table = ops.convert_to_tensor(self.embeddings)
        size = (ops.shape(inputs)[1], inputs.shape[-1])
        if is_known or length is None:
            vectors = ops.slice(table, (start_index, 0), size)
        else:
            positions = start_index + ops.arange(size[0])
            vectors = ops.take(table, positions, axis=0)
        if known is None:
            # Beyond the end, JAX would clamp the index.
            past_the_end = start_index + size[0] > self.sequence_length
            vectors = ops.where(past_the_end, float("nan"), vectors)
        return ops.broadcast_to(vectors[None], ops.shape(inputs))

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "sequence_length": self.sequence_length}
