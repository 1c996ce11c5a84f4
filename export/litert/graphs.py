"""The graphs of a LiteRT export: the encoder, and one step of the decoder.

Lengths and the number of sentences are dynamic. A row of a product depends on no
other row, in int8 either, and no sentence attends to padding or to another one: so
no batch mate changes a translation. The step gets the keys and values of all earlier
positions of all hypotheses of a sentence, in the order of computation; a mask selects
the ancestors of each hypothesis. So the caller appends to them, and never reorders
them.

Axes: `B` sentences, `S` source tokens, `K` hypotheses of a sentence, `C` candidates,
`L` cached entries, `H` heads, `D` width of the model, `d` features of a head, `V`
vocabulary.
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
    apply_linear,
    embed,
    encode_positions,
    recur,
    run_decoder_step,
    run_encoder,
)

transpose = tf.linalg.matrix_transpose
FORBIDDEN = -1e30  # Attention logit of what a query may not attend to.


def make_encoder(transformer: Transformer, max_length: int, precision: str) -> Callable:
    """Returns a function from source ids to the memory of each decoder layer.

    Its input is `ids`, int32 `(B, S)`, `S` at most `max_length`, with 0 as padding.
    Its outputs are `memory_mask`, `(B, 1, S)`, 0 or `FORBIDDEN`; `memory_keys_0`,
    `(H, B, d_k, S)`, divided by `sqrt(d_k)`, `memory_values_0`, `(H, B, S, d_v)`,
    and so on. A subclass that computes something else is refused.
    """
    if not is_supported(transformer):
        raise UserError(
            "--format must be saved_model for a model that replaces `encode`, "
            "`decode_states`, the embedding or a stack. "
            f"Received: {type(transformer).__name__}"
        )
    positions = encode_positions(transformer, max_length)

    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32, "ids")], autograph=False
    )
    def encode(ids):
        is_token = tf.minimum(ids, 1)
        mask = (1.0 - tf.cast(is_token, tf.float32)) * FORBIDDEN
        mask = tf.expand_dims(mask, 1)  # (B, 1, S)
        x = look_up(transformer.embedding_of_sources, ids, precision)
        # Not `tf.range`: the fast kernels need shapes that nothing computes.
        x += tf.gather(positions, tf.cumsum(is_token * 0 + 1, axis=1) - 1)

        def self_attend(layer, x):
            queries, keys, values = project(layer, x, "query", "key", "value")
            return attend(layer, queries, transpose(keys), values, mask)[0]

        x = tf.expand_dims(x, 0)  # (1, B, S, D)
        x = run_encoder(transformer.encoder, x, self_attend)
        outputs = {"memory_mask": mask}
        for i, layer in enumerate(transformer.decoder.layers):
            keys, values = project(layer.memory_attention, x, "key", "value")
            outputs[f"memory_keys_{i}"] = transpose(keys)
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
        ids: Int32 `(B, K)`, the tokens at the position.
        position: Int32 `(1,)`.
        mask: Float32 `(B, K, K + L)`, for the tokens of the sentence and its
            cache: 0 for the token itself and its ancestors, and `FORBIDDEN`
            elsewhere; without recurrence only.
        keys_0, values_0: `(H, B, L, d)`, the cache of the first layer, and so
            on; with recurrence `state_0`, `(B, K, D)`.
        memory_mask, memory_keys_0, memory_values_0: Outputs of the encoder.

    Outputs:
        logits: Float32 `(B * K, V)`.
        candidates: Int32 `(B * K, C)`, the best allowed tokens.
        log_probabilities: Float32 `(B * K, C)`, theirs.
        attention: Float32 `(B, K, S)`, which aligns: of one layer, that of one
            head or the mean over the heads.
        keys_0, values_0: `(H, B, K, d)`, the new entries; or the new `state_0`.

    There are `max_length` positions at most. `forbidden_ids` are no candidates,
    and `settings` have the layer and the head of `attention`.
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

        def self_attend(i, x):
            layer = layers[i]
            if layer.mixer == "ssru":
                y, state = recur(
                    layer.recurrence, x, tf.expand_dims(inputs[f"state_{i}"], 0)
                )
                outputs[f"state_{i}"] = tf.squeeze(state, 0)
                return y
            attention = layer.self_attention
            queries, keys, values = project(attention, x, "query", "key", "value")
            outputs.update({f"keys_{i}": keys, f"values_{i}": values})
            keys = tf.concat([keys, inputs[f"keys_{i}"]], axis=2)
            values = tf.concat([values, inputs[f"values_{i}"]], axis=2)
            mask = inputs["mask"]
            return attend(attention, queries, transpose(keys), values, mask)[0]

        def attend_to_memory(i, x):
            attention = layers[i].memory_attention
            (queries,) = project(attention, x, "query")
            y, weights = attend(
                attention,
                queries,
                inputs[f"memory_keys_{i}"],
                inputs[f"memory_values_{i}"],
                inputs["memory_mask"],
            )
            if i == align_layer:
                outputs["attention"] = choose_head(weights, settings, axis=0)
            return y

        x = run_decoder_step(
            transformer.decoder, tf.expand_dims(x, 0), self_attend, attend_to_memory
        )
        x = tf.reshape(x, [-1, x.shape[-1]])
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
    """Returns the `k` highest values of each row, best first, and their columns.

    LiteRT's own kernel is slow for long rows. So they are cut into parts that lie
    one below the other: the highest values are in the `k` columns whose maximum is
    highest.
    """
    size = x.shape[1]
    count = max(n for n in range(1, 17) if size % n == 0 and size // n >= k)
    width = size // count
    parts = tf.reshape(x, [-1, count, width])
    _, best = tf.math.top_k(tf.reduce_max(parts, axis=1), k)
    offers = tf.gather(parts, best, axis=2, batch_dims=1)  # (N, count, k)
    columns = tf.expand_dims(best, 1) + width * np.arange(count, dtype="int32")[:, None]
    values, places = tf.math.top_k(tf.reshape(offers, [-1, count * k]), k)
    columns = tf.reshape(columns, [-1, count * k])
    return values, tf.gather(columns, places, batch_dims=1)


def step_inputs(transformer: Transformer) -> dict[str, tf.TensorSpec]:
    """Returns the inputs of `make_step`."""
    specs = {
        "ids": tf.TensorSpec([None, None], tf.int32, "ids"),
        "position": tf.TensorSpec([1], tf.int32, "position"),
    }

    def add(name, *shape):
        specs[name] = tf.TensorSpec(shape, tf.float32, name)

    add("memory_mask", None, 1, None)
    for i, layer in enumerate(transformer.decoder.layers):
        if layer.mixer == "ssru":
            add(f"state_{i}", None, None, transformer.architecture.hidden_dim)
        else:
            own = layer.self_attention
            add("mask", None, None, None)
            add(f"keys_{i}", own.num_heads, None, None, own.key_dim)
            add(f"values_{i}", own.num_heads, None, None, own.value_width)
        memory = layer.memory_attention
        add(f"memory_keys_{i}", memory.num_heads, None, memory.key_dim, None)
        add(f"memory_values_{i}", memory.num_heads, None, None, memory.value_width)
    return specs


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


def project(layer, x, *names):
    """Returns queries, keys or values of `(1, B, T, D)`, each `(H, B, T, d)`.

    One product computes them all. As two sizes are dynamic, no reshaping could split
    the heads.
    """
    widths = [layer.value_width if name == "value" else layer.key_dim for name in names]
    with tf.init_scope():  # Now, and not in the graph.
        kernel = fuse_projections(layer, names, "kernel")
        bias = fuse_projections(layer, names, "bias") if layer.use_bias else None
    y = tf.matmul(x, kernel)
    y = split_heads(layer, y if bias is None else y + bias)
    is_even = len({*widths}) == 1  # There is a faster kernel.
    return tf.split(y, len(widths) if is_even else widths, axis=3)


def fuse_projections(layer, names, weight):
    """Joins weights of projections, head by head; those of keys over `sqrt(d_k)`."""
    joined = []
    for name in names:
        x = np.array(getattr(getattr(layer, f"{name}_projection"), weight), "float32")
        if name == "key":
            x *= np.float32(layer.key_dim**-0.5)
        joined.append(x.reshape(*x.shape[:-1], layer.num_heads, -1))
    joined = np.concatenate(joined, axis=-1)
    return joined.reshape(*joined.shape[:-2], -1)


def split_heads(layer, x):
    """Turns `(1, B, T, H d)` into `(H, B, T, d)`."""
    return tf.concat(tf.split(x, layer.num_heads, axis=3), axis=0)


def attend(layer, queries, keys, values, mask):
    """Computes attention (equation 1) of all queries to all keys `(H, B, d, S)`.

    Multiplying keys that a graph gets in this form is faster. Returns the output,
    `(1, B, T, D)`, and the weights, `(H, B, T, S)`.
    """
    logits = tf.matmul(queries, keys) + tf.expand_dims(mask, 0)
    weights = tf.nn.softmax(logits)
    heads = tf.split(tf.matmul(weights, values), layer.num_heads, axis=0)
    return apply_linear(layer.output_projection, tf.concat(heads, axis=3)), weights
