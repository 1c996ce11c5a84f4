"""Estimates FLOPs and memory of training from the number of weights."""

import numpy as np

from keras_transformer import Transformer
from train.data.batch_plan import BatchPlan
from train.data.bucketing import count_micro_batches

FLOAT_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def count_flops(transformer: Transformer, plan: BatchPlan) -> float:
    """Returns the floating point operations of an update, on average.

    An update takes six for each weight and position, forward and backward
    (Kaplan et al., 2020). The encoder has the positions of the source, the
    decoder those of the target, both with padding. Only target tokens have
    logits. Products of queries and keys are left out: with the base model and
    30 tokens a sentence they are 2 % of the others.
    """
    encoder = transformer.encoder.count_params()
    decoder = transformer.decoder.count_params()
    width = transformer.architecture.hidden_dim
    total = plan.target_tokens * width * transformer.vocabulary_size
    for batches, (rows, source, target) in zip(
        plan.num_batches, plan.shapes, strict=True
    ):
        total += batches * rows * (source * encoder + target * decoder)
    return 6 * total / plan.batches_per_pass


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
    """Returns the shapes of the micro-batches of a device."""
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
    """Returns the number of a batch in `j`'s pass that needs most memory."""
    needed = [
        sum(estimate_memory(transformer, shape, precision).values())
        for shape in micro_batch_shapes(plan, num_replicas, limit)
    ]
    there = np.flatnonzero(plan.num_batches).tolist()
    # Of equals, the one with the longest sentences.
    return plan.find_shape(j, max(reversed(there), key=needed.__getitem__))


def estimate_memory(
    transformer: Transformer, shape: tuple[int, int, int], precision: str = "float32"
) -> dict[str, int]:
    """Estimates the bytes that a device needs for a micro-batch.

    `"weights"`, `"gradients"` and `"optimizer"` (Adam's two moments) are exact.
    `"logits"` are three float32 arrays `(B, T, V)`: logits, their softmax and
    their gradient. `"activations"` are what the backward pass reads: about
    `12 D + 2 d_ff` numbers for each position of an encoder layer, `20 D +
    2 d_ff` of a decoder layer, and three for each attention weight. TensorFlow
    itself needs some hundred MB more.
    """
    rows, source, target = shape
    sizes = transformer.architecture
    wide, scores = 2 * sizes.intermediate_dim, 3 * sizes.num_heads
    encoder = source * (12 * sizes.hidden_dim + wide + scores * source)
    decoder = target * (20 * sizes.hidden_dim + wide + scores * (source + target))
    numbers = sizes.num_layers * encoder + sizes.num_decoder_layers * decoder
    weights = 4 * transformer.count_params()
    return {
        "weights": weights,
        "gradients": weights,
        "optimizer": 2 * weights,
        "logits": 3 * 4 * rows * target * transformer.vocabulary_size,
        "activations": FLOAT_BYTES[precision] * rows * numbers,
    }
