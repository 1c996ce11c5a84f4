"""Estimates parameters, FLOPs and memory of training from the model's sizes."""

import numpy as np

from keras_transformer import Architecture, Transformer
from train.data.batch_plan import BatchPlan
from train.data.bucketing import count_micro_batches

FLOAT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def count_parameters(
    architecture: Architecture,
    vocabulary_size: int,
    max_length: int,
    source_vocabulary_size: int | None = None,
) -> int:
    """Returns the number of weights of a model.

    Args:
        architecture: Sizes of the model.
        vocabulary_size: Int, `V`.
        max_length: Int, positions that `positions="learned"` has vectors for.
        source_vocabulary_size: Int, ids of sources that have a matrix of their
            own, or `None`.
    """
    width = architecture.hidden_dim
    feed_forward = (
        2 * width * architecture.intermediate_dim
        + architecture.intermediate_dim
        + width
    )
    biases = 0
    if architecture.use_bias:
        heads = 2 * architecture.key_dim + architecture.value_dim
        biases = architecture.num_heads * heads + width
    attention = attention_weights(architecture) + biases
    has_ssru = architecture.decoder_mixer == "ssru"
    mixer = mixer_weights(architecture) + (width if has_ssru else biases)
    norm = 2 * width
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = mixer + attention + feed_forward + 3 * norm
    stacks = architecture.num_layers * encoder_layer
    stacks += architecture.num_decoder_layers * decoder_layer
    final_norms = 2 * norm if architecture.norm == "pre" else 0
    learned = max_length if architecture.positions == "learned" else 0
    rows = vocabulary_size + (source_vocabulary_size or 0) + learned
    if not architecture.tied_output:
        rows += vocabulary_size
    bias = vocabulary_size if architecture.logits_bias else 0
    return stacks + final_norms + rows * width + bias


def attention_weights(architecture: Architecture) -> int:
    """Returns the weights of an attention's four maps, without biases."""
    return 2 * architecture.hidden_dim * features_of_heads(architecture)


def mixer_weights(architecture: Architecture) -> int:
    """Returns the weights of the decoder's self-attention or recurrence."""
    if architecture.decoder_mixer == "ssru":
        return 2 * architecture.hidden_dim**2
    return attention_weights(architecture)


def features_of_heads(architecture: Architecture) -> int:
    """Returns the features of a key and a value of all heads."""
    return architecture.num_heads * (architecture.key_dim + architecture.value_dim)


def count_flops(
    architecture: Architecture, vocabulary_size: int, plan: BatchPlan
) -> float:
    """Returns the floating point operations of an update, on average.

    Counted are the matrix products, forward and backward, with padding: six
    for each weight of a product and each position, and `6 h (d_k + d_v) T S`
    for each attention and sentence with `T` queries and `S` keys. The encoder's
    layers and the keys and values of the memory have the positions of the
    source, all others those of the target. Only the `n` target tokens have
    logits, which cost `6 n D V`; their bias counts as one more feature.

    Args:
        architecture: Sizes of the model.
        vocabulary_size: Int, `V`.
        plan: The batches.
    """
    attention = attention_weights(architecture)
    feed_forward = 2 * architecture.hidden_dim * architecture.intermediate_dim
    heads = features_of_heads(architecture)
    depth, decoders = architecture.num_layers, architecture.num_decoder_layers
    # Encoder-decoder attention has half its weights on either side.
    of_source = depth * (attention + feed_forward) + decoders * attention // 2
    of_target = decoders * (mixer_weights(architecture) + feed_forward + attention // 2)
    has_self_attention = architecture.decoder_mixer == "attention"
    features = architecture.hidden_dim + architecture.logits_bias
    total = 6 * plan.target_tokens * features * vocabulary_size
    for batches, (rows, source, target) in zip(
        plan.num_batches, plan.shapes, strict=True
    ):
        scores = depth * source**2
        scores += decoders * (has_self_attention * target**2 + target * source)
        products = source * of_source + target * of_target + heads * scores
        total += 6 * batches * rows * products
    return total / plan.batches_per_pass


def count_positions(plan: BatchPlan) -> int:
    """Returns the positions of the longer side in an update, on average."""
    total = sum(
        batches * rows * max(lengths)
        for batches, (rows, *lengths) in zip(plan.num_batches, plan.shapes, strict=True)
    )
    return int(total // plan.batches_per_pass)


def micro_batch_shapes(
    plan: BatchPlan, num_replicas: int, limit: int | None
) -> list[tuple[int, int, int]]:
    """Returns the shapes of the micro-batches of a device.

    Args:
        plan: The batches.
        num_replicas: Int, number of devices that share a batch.
        limit: Int or `None`, maximum positions of a side at once.
    """
    found = []
    for shape in plan.shapes:
        parts = num_replicas * count_micro_batches(shape, num_replicas, limit)
        rows, *lengths = shape
        found.append((-(-rows // parts), *lengths))
    return found


def find_largest_batch(
    transformer: Transformer,
    plan: BatchPlan,
    j: int,
    num_replicas: int,
    limit: int | None,
    precision: str,
) -> int:
    """Returns the number of a batch in `j`'s pass that needs most memory.

    Args:
        transformer: The model.
        plan: The batches.
        j: Int, number of a batch.
        num_replicas: Int, number of devices that share a batch.
        limit: Int or `None`, maximum positions of a side at once.
        precision: That of `estimate_memory`.
    """

    def count_bytes(shape):
        estimate = estimate_memory(
            transformer.architecture,
            transformer.vocabulary_size,
            transformer.sequence_length,
            [shape],
            precision,
            transformer.source_vocabulary_size,
        )
        return sum(estimate.values())

    shapes = micro_batch_shapes(plan, num_replicas, limit)
    there = np.flatnonzero(plan.num_batches).tolist()
    # Of equals, the one with the longest sentences.
    largest = max(reversed(there), key=lambda n: count_bytes(shapes[n]))
    return plan.find_shape(j, largest)


def estimate_memory(
    architecture: Architecture,
    vocabulary_size: int,
    max_length: int,
    shapes: list[tuple[int, int, int]],
    precision: str = "float32",
    source_vocabulary_size: int | None = None,
) -> dict[str, int]:
    """Estimates the bytes that a device needs.

    `"weights"`, `"gradients"` and `"optimizer"` (Adam's two moments) are exact.
    `"logits"` are three float32 arrays `(P, V)`: logits, their softmax and
    their gradient. `"activations"` are what the backward pass reads: about
    `8 D + 2 h (d_k + d_v) + 2 d_ff` numbers for each position of an encoder
    layer, `12 D + 4 h (d_k + d_v) + 2 d_ff` of a decoder layer, and three for
    each attention weight. A recurrence has `4 D` for each of its `log2(T)`
    steps instead of heads and weights. TensorFlow itself needs some hundred MB
    more.

    Args:
        architecture: Sizes of the model.
        vocabulary_size: Int, `V`.
        max_length: Int, positions that `positions="learned"` has vectors for.
        shapes: Numbers of sentences, source and target lengths of the
            micro-batches; the largest one counts.
        precision: `"float32"`, `"bfloat16"` or `"float16"`, of the
            activations.
        source_vocabulary_size: Int, ids of sources that have a matrix of their
            own, or `None`.
    """
    weights = 4 * count_parameters(
        architecture, vocabulary_size, max_length, source_vocabulary_size
    )
    positions = max(rows * target for rows, _, target in shapes)
    numbers = max(
        rows * count_activations(architecture, source, target)
        for rows, source, target in shapes
    )
    return {
        "weights": weights,
        "gradients": weights,
        "optimizer": 2 * weights,
        "logits": 3 * 4 * positions * vocabulary_size,
        "activations": FLOAT_BYTES[precision] * numbers,
    }


def count_activations(architecture: Architecture, source: int, target: int) -> int:
    """Returns the number of activations that the layers keep for one pair."""
    width, heads = architecture.hidden_dim, features_of_heads(architecture)
    wide = 2 * architecture.intermediate_dim
    of_score = 3 * architecture.num_heads
    encoder = source * (8 * width + 2 * heads + wide) + of_score * source**2
    decoder = target * (12 * width + 2 * heads + wide)
    decoder += of_score * target * source
    if architecture.decoder_mixer == "ssru":
        decoder += target * 4 * width * (target - 1).bit_length()
    else:
        decoder += target * 2 * heads + of_score * target**2
    return architecture.num_layers * encoder + architecture.num_decoder_layers * decoder
