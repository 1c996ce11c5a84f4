"""The graphs of a LiteRT export: the encoder, and one step of the decoder.

A graph has one sentence, so nothing is padded and no batch mate can change a
translation. Lengths are dynamic. The step gets the keys and values of all
earlier positions of all hypotheses, in the order of computation; a mask selects
the ancestors of each hypothesis. So the caller appends to them, and never
reorders them.

Axes: `S` source tokens, `K` hypotheses, `C` candidates, `L` cached entries, `H`
heads, `D` width of the model, `d` features of a head, `V` vocabulary.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from command_line.errors import UserError
from export.model.forced_decoding import align_layer_of, check_align_head, choose_head
from export.model.search import SearchSettings
from keras_transformer import Transformer
from keras_transformer.search.options import IMPOSSIBLE
from keras_transformer.search.tensorflow.graph_transformer import is_supported
from keras_transformer.search.tensorflow.layers import (
    add_and_norm,
    apply_linear,
    embed,
    feed_forward,
    finish_stack,
    normalize_input,
)


def make_encoder(transformer: Transformer, max_length: int, precision: str) -> Callable:
    """Returns a function from source ids to the memory of each decoder layer.

    Its input is `ids`, int32 `(S,)`. Its outputs are `memory_keys_0`,
    `(H, S, d_k)`, divided by `sqrt(d_k)`, `memory_values_0`, `(H, S, d_v)`, and
    so on.

    Args:
        transformer: A built `Transformer`.
        max_length: Int, the maximum of `S`.
        precision: As in `convert`.

    Raises:
        UserError: If a subclass computes something else.
    """
    if not is_supported(transformer):
        raise UserError(
            "--format must be saved_model for a model that replaces `encode`, "
            "`decode_states`, the embedding or a stack. "
            f"Received: {type(transformer).__name__}"
        )
    positions = encode_positions(transformer, max_length)

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.int32, "ids")], autograph=False
    )
    def encode(ids):
        x = look_up(transformer.embedding_of_sources, ids, precision)
        # Not `tf.range`: the fast kernels need shapes that nothing computes.
        count = tf.cumsum(tf.minimum(ids + 1, 1))
        x += tf.gather(positions, count - 1)
        for layer in transformer.encoder.layers:
            y = normalize_input(layer.attention_residual, x)
            memory = project(layer.attention, y)
            y, _ = attend(layer.attention, y, *memory)
            x = add_and_norm(layer.attention_residual, x, y)
            y = normalize_input(layer.feed_forward_residual, x)
            y = feed_forward(layer.feed_forward, y)
            x = add_and_norm(layer.feed_forward_residual, x, y)
        x = finish_stack(transformer.encoder, x)
        outputs = {}
        for i, layer in enumerate(transformer.decoder.layers):
            keys, values = project(layer.memory_attention, x)
            outputs[f"memory_keys_{i}"] = keys
            outputs[f"memory_values_{i}"] = values
        return outputs

    return encode


def make_step(
    transformer: Transformer,
    max_length: int,
    num_candidates: int,
    forbidden_ids: list[int],
    settings: SearchSettings,
    precision: str,
) -> Callable:
    """Returns a function that decodes one position of all hypotheses.

    Inputs:
        ids: Int32 `(K,)`, the tokens at the position.
        position: Int32 `(1,)`.
        mask: Float32 `(K, K + L)`, for the tokens themselves and the cache: 0
            for the token itself and its ancestors, and the `FORBIDDEN` of
            `litert_translator.model` elsewhere; without recurrence only.
        keys_0, values_0: `(H, L, d)`, the cache of the first layer, and so on;
            with recurrence `state_0`, `(K, D)`.
        memory_keys_0, memory_values_0: Outputs of the encoder.

    Outputs:
        logits: Float32 `(K, V)`.
        candidates: Int32 `(K, C)`, the best allowed tokens.
        log_probabilities: Float32 `(K, C)`, theirs.
        attention: Float32 `(K, S)`, which aligns: of one layer, that of one
            head or the mean over the heads.
        keys_0, values_0: `(H, K, d)`, the new entries; or the new `state_0`.

    Args:
        transformer: A built `Transformer`, see `make_encoder`.
        max_length: Int, the maximum number of positions.
        num_candidates: Int, `C`.
        forbidden_ids: The tokens that are no candidates.
        settings: Settings with the layer and the head of `attention`.
        precision: As in `convert`.
    """
    layers = transformer.decoder.layers
    align_layer = align_layer_of(transformer, settings.align_layer)
    check_align_head(transformer, settings.align_head)
    positions = encode_positions(transformer, max_length)
    penalties = np.zeros(transformer.vocabulary_size, "float32")
    penalties[forbidden_ids] = IMPOSSIBLE

    @tf.function(input_signature=[step_inputs(transformer)], autograph=False)
    def step(inputs):
        x = look_up(transformer.embedding, inputs["ids"], precision)
        x += tf.gather(positions, inputs["position"])
        outputs = {}
        for i, layer in enumerate(layers):
            y = normalize_input(layer.self_attention_residual, x)
            mix = recur if layer.mixer == "ssru" else self_attend
            y, new = mix(layer, y, i, inputs)
            outputs.update(new)
            x = add_and_norm(layer.self_attention_residual, x, y)
            y = normalize_input(layer.memory_attention_residual, x)
            memory = (inputs[f"memory_keys_{i}"], inputs[f"memory_values_{i}"])
            y, weights = attend(layer.memory_attention, y, *memory)
            if i == align_layer:
                outputs["attention"] = choose_head(weights, settings, axis=0)
            x = add_and_norm(layer.memory_attention_residual, x, y)
            y = normalize_input(layer.feed_forward_residual, x)
            y = feed_forward(layer.feed_forward, y)
            x = add_and_norm(layer.feed_forward_residual, x, y)
        x = finish_stack(transformer.decoder, x)
        logits = tf.cast(transformer.compute_logits(x), tf.float32)
        best, candidates = top_k(logits + penalties, num_candidates)
        # `log_softmax` of the best ones. The softmax of the highest logit is 1
        # over the sum of the others', and of all kernels for that the fastest.
        highest = tf.reduce_max(logits, axis=1, keepdims=True)
        share = tf.reduce_max(tf.nn.softmax(logits), axis=1, keepdims=True)
        return {
            "logits": logits,
            "candidates": candidates,
            "log_probabilities": best - highest + tf.math.log(share),
            **outputs,
        }

    return step


def top_k(x, k):
    """Returns the `k` highest values of each row, and their columns."""
    if k > 1:
        return tf.math.top_k(x, k)
    columns = tf.argmax(x, axis=1, output_type=tf.int32)
    return tf.reduce_max(x, axis=1, keepdims=True), columns[:, None]


def step_inputs(transformer: Transformer) -> dict[str, tf.TensorSpec]:
    """Returns the inputs of `make_step`."""
    specs = {
        "ids": tf.TensorSpec([None], tf.int32, "ids"),
        "position": tf.TensorSpec([1], tf.int32, "position"),
    }

    def add(name, *shape):
        specs[name] = tf.TensorSpec(shape, tf.float32, name)

    def add_pair(prefix, i, layer):
        value_dim = layer.value_dim or layer.key_dim
        for name, size in (("keys", layer.key_dim), ("values", value_dim)):
            add(f"{prefix}{name}_{i}", layer.num_heads, None, size)

    for i, layer in enumerate(transformer.decoder.layers):
        if layer.mixer == "ssru":
            add(f"state_{i}", None, transformer.architecture.hidden_dim)
        else:
            add("mask", None, None)
            add_pair("", i, layer.self_attention)
        add_pair("memory_", i, layer.memory_attention)
    return specs


def encode_positions(transformer: Transformer, count: int) -> tf.Tensor:
    """Returns the encodings of the first positions, `(count, D)`."""
    width = transformer.architecture.hidden_dim
    encodings = transformer.position_encoding(tf.zeros([1, count, width]))
    return tf.cast(encodings[0], tf.float32)


def look_up(layer, ids, precision):
    """Computes a `TokenEmbedding`.

    In int8, the table has the scales and integers that the converter gives the
    matrix of a tied output layer, so that the file has them once.
    """
    if precision == "float32":
        return embed(layer, ids)
    with tf.init_scope():  # Now, and not in the graph.
        table = np.array(layer.embeddings, "float32")
    scales = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    integers = np.round(table / np.where(scales > 0, scales, 1))
    x = tf.cast(tf.gather(integers.astype("int8"), ids), tf.float32)
    x *= tf.gather(scales, ids)
    return x * layer.hidden_dim**0.5 if layer.scale else x


def split_heads(layer, x):
    """Turns `(T, H d)` into `(H, T, d)`."""
    features = x.shape[-1] // layer.num_heads
    x = tf.reshape(x, [-1, layer.num_heads, features])
    return tf.transpose(x, [1, 0, 2])


def project(layer, x):
    """Returns the keys, over `sqrt(d_k)`, and values of `(T, D)`."""
    keys = split_heads(layer, apply_linear(layer.key_projection, x))
    values = split_heads(layer, apply_linear(layer.value_projection, x))
    return keys * layer.key_dim**-0.5, values


def attend(layer, x, keys, values):
    """Computes attention (equation 1) of `(T, D)` to all keys `(H, S, d)`.

    Returns:
        The output, `(T, D)`, and the weights, `(H, T, S)`.
    """
    queries = split_heads(layer, apply_linear(layer.query_projection, x))
    weights = tf.nn.softmax(tf.matmul(queries, keys, transpose_b=True))
    return combine(layer, tf.matmul(weights, values)), weights


def combine(layer, heads):
    """Concatenates heads `(H, T, d)`, and projects them to `(T, D)`."""
    heads = tf.transpose(heads, [1, 0, 2])
    width = layer.num_heads * heads.shape[-1]
    heads = tf.reshape(heads, [-1, width])
    return apply_linear(layer.output_projection, heads)


def self_attend(layer, x, i, inputs):
    """Attends to the new position and to the cache.

    Returns:
        The output, `(K, D)`, and a dict of the new keys and values.
    """
    attention = layer.self_attention
    queries = apply_linear(attention.query_projection, x)
    queries = split_heads(attention, queries)
    keys, values = project(attention, x)
    every_key, every_value = (
        tf.concat([new, inputs[f"{name}_{i}"]], axis=1)
        for name, new in (("keys", keys), ("values", values))
    )
    logits = tf.matmul(queries, every_key, transpose_b=True)
    weights = tf.nn.softmax(logits + inputs["mask"])
    y = combine(attention, tf.matmul(weights, every_value))
    return y, {f"keys_{i}": keys, f"values_{i}": values}


def recur(layer, x, i, inputs):
    """Computes a step of the `SSRU`: the output and a dict of the state."""
    kept = tf.sigmoid(apply_linear(layer.recurrence.forget, x))
    new = apply_linear(layer.recurrence.update, x)
    state = kept * inputs[f"state_{i}"] + (1 - kept) * new
    return tf.nn.relu(state), {f"state_{i}": state}
