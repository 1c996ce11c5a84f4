"""Converts the weights of a Transformer to a CTranslate2 model specification.

CTranslate2's `TransformerSpec` holds transposed kernels, one kernel for
queries, keys and values of self-attention, and a table of position vectors.
"""

import itertools

import keras
import numpy as np

from keras_transformer import Transformer

ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH"}


def make_spec(transformer: Transformer, vocabularies: list[list[str]], length: int):
    """Returns the specification with the weights of a model.

    `vocabularies` are the subwords of sources and of targets; `length` is the
    number of positions.
    """
    import ctranslate2  # Optional, so not before it is needed.

    architecture = transformer.architecture
    stack = {
        "num_heads": architecture.num_heads,
        "pre_norm": architecture.norm == "pre",
        "head_dim": max(architecture.key_dim, architecture.value_dim),
        "activation": getattr(
            ctranslate2.specs.Activation, ACTIVATIONS[architecture.activation]
        ),
    }
    spec = ctranslate2.specs.TransformerSpec(
        ctranslate2.specs.TransformerEncoderSpec(architecture.num_layers, **stack),
        ctranslate2.specs.TransformerDecoderSpec(
            architecture.num_decoder_layers, **stack
        ),
    )
    sources, targets = vocabularies
    spec.register_source_vocabulary(sources)
    spec.register_target_vocabulary(targets)
    fill_embeddings(spec, transformer, length)
    for part, layer in zip(spec.encoder.layer, transformer.encoder.layers, strict=True):
        fill_attention(part.self_attention, layer.attention, 3)
        fill_norm(part.self_attention, layer.attention_residual)
        fill_feed_forward(part.ffn, layer)
    for part, layer in zip(spec.decoder.layer, transformer.decoder.layers, strict=True):
        fill_attention(part.self_attention, layer.self_attention, 3)
        fill_norm(part.self_attention, layer.self_attention_residual)
        fill_attention(part.attention, layer.memory_attention, 1, 2)
        fill_norm(part.attention, layer.memory_attention_residual)
        fill_feed_forward(part.ffn, layer)
    last = transformer.decoder.layers[-1].feed_forward_residual
    spec.config.layer_norm_epsilon = last.normalization.epsilon
    return spec


def fill_embeddings(spec, transformer, length):
    """Fills in embeddings, positions and the output layer."""
    nothing = keras.ops.zeros((1, length, transformer.architecture.hidden_dim))
    positions = to_numpy(transformer.position_encoding(nothing)[0])
    for part, stack in (
        (spec.encoder, transformer.encoder),
        (spec.decoder, transformer.decoder),
    ):
        part.position_encodings.encodings = positions
        part.scale_embeddings = transformer.architecture.scale_embedding
        if transformer.architecture.norm == "pre":
            fill_norm(part, stack)
    # The matrix is used two or three times; the file holds it once.
    table = to_numpy(transformer.embedding.embeddings)
    spec.decoder.embeddings.weight = table
    output = transformer.embedding_of_logits
    spec.decoder.projection.weight = (
        to_numpy(output.embeddings) if transformer.output_embedding else table
    )
    spec.encoder.embeddings[0].weight = (
        table
        if transformer.source_embedding is None
        else to_numpy(transformer.source_embedding.embeddings)
    )
    if output.bias is not None:
        spec.decoder.projection.bias = to_numpy(output.bias)


def fill_attention(spec, attention, *counts):
    """Fills in an attention whose first linear maps join so many of q, k and v."""
    maps = iter(project(attention))
    for linear, count in zip(spec.linear, (*counts, 1), strict=True):
        fill_linear(linear, *itertools.islice(maps, count))
    spec.queries_scale = attention.key_dim**-0.5


def fill_linear(spec, *maps):
    """Fills in concatenated maps, each a pair of transposed kernel and bias."""
    kernels, biases = zip(*maps, strict=True)
    spec.weight = np.concatenate(kernels)
    if biases[0] is not None:
        spec.bias = np.concatenate(biases)


def project(attention):
    """Yields pairs of a transposed kernel and its bias or `None`: q, k, v, output.

    In CTranslate2 all heads have one width. With `d_k ≠ d_v` the narrower ones
    are padded with zeros, which change neither products nor sums.
    """
    heads = attention.num_heads
    width = max(attention.key_dim, attention.value_dim)

    def widen(kernel):
        """Pads the heads of a kernel `(D, heads * features)` with zeros."""
        split = kernel.reshape(len(kernel), heads, -1)
        zeros = [(0, 0), (0, 0), (0, width - split.shape[2])]
        return np.pad(split, zeros).reshape(len(kernel), -1)

    def bias_of(projection):
        return to_numpy(projection.bias) if projection.use_bias else None

    for projection in (
        attention.query_projection,
        attention.key_projection,
        attention.value_projection,
    ):
        bias = bias_of(projection)
        bias = bias if bias is None else widen(bias[None])[0]
        yield widen(to_numpy(projection.kernel)).T, bias
    output = attention.output_projection
    yield widen(to_numpy(output.kernel).T), bias_of(output)


def fill_feed_forward(spec, layer):
    for linear, dense in (
        (spec.linear_0, layer.feed_forward.expand),
        (spec.linear_1, layer.feed_forward.contract),
    ):
        fill_linear(linear, (to_numpy(dense.kernel).T, to_numpy(dense.bias)))
    fill_norm(spec, layer.feed_forward_residual)


def fill_norm(spec, owner):
    """Fills in the normalization of a residual connection or of a stack."""
    spec.layer_norm.gamma = to_numpy(owner.normalization.gamma)
    spec.layer_norm.beta = to_numpy(owner.normalization.beta)


def to_numpy(tensor):
    # A copy: CTranslate2 quantizes in place.
    return np.array(keras.ops.convert_to_numpy(tensor), "float32")
