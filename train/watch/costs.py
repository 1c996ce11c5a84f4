"""What a training costs, from the sizes alone: parameters, FLOPs, memory."""

from keras_transformer import Architecture
from train.data.batches import BatchPlan

FLOAT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def count_parameters(
    architecture: Architecture, vocabulary_size: int, max_length: int
) -> int:
    """Returns the number of weights of a model.

    Args:
        architecture: Sizes of the model.
        vocabulary_size: Int, `V`.
        max_length: Int, positions that `positions="learned"` has vectors for.
    """
    width = architecture.hidden_dim
    feed_forward = (
        2 * width * architecture.intermediate_dim
        + architecture.intermediate_dim
        + width
    )
    attention = attention_weights(architecture)
    norm = 2 * width
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    stacks = architecture.num_layers * (encoder_layer + decoder_layer)
    final_norms = 2 * norm if architecture.norm == "pre" else 0
    learned = max_length if architecture.positions == "learned" else 0
    return stacks + final_norms + (vocabulary_size + learned) * width


def attention_weights(architecture: Architecture) -> int:
    """Returns the weights of an attention's four maps, which have no bias."""
    width = architecture.num_heads * (
        architecture.key_dim + architecture.value_dim
    )
    return 2 * architecture.hidden_dim * width


def count_flops(
    architecture: Architecture, vocabulary_size: int, plan: BatchPlan
) -> float:
    """Returns the floating point operations of an update, on average.

    Those of the matrix products, forward and backward, with padding, as the
    machine does them: six for each weight of a product and each position that
    it is applied to, and `6 h (d_k + d_v) T S` for each attention and row of
    `T` queries and `S` keys. The encoder's layers and the keys and values of
    the memory see the positions of the source, all else those of the target,
    and `n` target tokens alone get logits, which takes `6 n D V`.

    Args:
        architecture: Sizes of the model.
        vocabulary_size: Int, `V`.
        plan: The batches.
    """
    attention = attention_weights(architecture)
    feed_forward = 2 * architecture.hidden_dim * architecture.intermediate_dim
    heads = architecture.num_heads * (
        architecture.key_dim + architecture.value_dim
    )
    # Of an attention to the memory, half the weights are for either side.
    layer = attention + feed_forward + attention // 2
    total = 6 * plan.target_tokens * architecture.hidden_dim * vocabulary_size
    for batches, (rows, source, target) in zip(
        plan.num_batches, plan.shapes, strict=True
    ):
        scores = heads * (source**2 + target**2 + target * source)
        products = (source + target) * layer + scores
        total += 6 * batches * rows * architecture.num_layers * products
    return total / plan.steps_per_epoch


def estimate_memory(
    architecture: Architecture,
    vocabulary_size: int,
    max_length: int,
    plan: BatchPlan,
    precision: str = "float32",
    num_parts: int = 1,
) -> dict[str, int]:
    """Returns bytes that a device needs, roughly.

    `"weights"`, `"gradients"` and `"optimizer"` (Adam's two moments) are exact.
    `"logits"` are three float32 arrays `(P, V)`: logits, their softmax and
    their gradient. `"activations"` are what the backward pass reads: about
    `8 D + 2 h (d_k + d_v) + 2 d_ff` numbers for each position of an encoder
    layer, `12 D + 4 h (d_k + d_v) + 2 d_ff` of a decoder layer, and three for
    each score of an attention. TensorFlow itself takes some hundred MB more.

    Args:
        architecture: Sizes of the model.
        vocabulary_size: Int, `V`.
        max_length: Int, positions that `positions="learned"` has vectors for.
        plan: The batches; the largest counts.
        precision: `"float32"`, `"bfloat16"` or `"float16"`, of the
            activations.
        num_parts: Int, devices times micro-batches, which share the rows.
    """
    weights = 4 * count_parameters(architecture, vocabulary_size, max_length)
    heads = architecture.num_heads * (
        architecture.key_dim + architecture.value_dim
    )
    wide = 2 * architecture.intermediate_dim
    encoder = 8 * architecture.hidden_dim + 2 * heads + wide
    decoder = 12 * architecture.hidden_dim + 4 * heads + wide
    positions = max(rows * target for rows, _, target in plan.shapes)
    numbers = architecture.num_layers * max(
        rows
        * (
            source * encoder
            + target * decoder
            + 3
            * architecture.num_heads
            * (source**2 + target**2 + target * source)
        )
        for rows, source, target in plan.shapes
    )
    return {
        "weights": weights,
        "gradients": weights,
        "optimizer": 2 * weights,
        "logits": 3 * 4 * positions * vocabulary_size // num_parts,
        "activations": FLOAT_BYTES[precision] * numbers // num_parts,
    }
