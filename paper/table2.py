"""What a training costs in FLOPs, reckoned in two ways (Table 2).

The paper multiplies hardware by time: GPUs x seconds x the FLOP/s that one
sustains. The other count is of the work itself: every matrix product in the
graph of an update, forward and backward, times the updates.
"""

import argparse
import math

import keras
import tensorflow as tf

from command_line.errors import UserError
from keras_transformer import PRESETS
from keras_transformer import Preset
from keras_transformer import Transformer
from keras_transformer.presets import find_preset
from train.loop.task import TeacherForcing
from train.options import positive

# "We used values of 2.8, 3.7, 6.0 and 9.5 TFLOPS for K80, K40, M40 and P100."
SUSTAINED = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
GPUS = 8
BATCH_TOKENS = 25_000  # Section 5.1.
HOURS = {"base": 12.0, "big": 3.5 * 24}  # Section 5.2.
PRINTED = {"base": 3.3e18, "big": 2.3e19}
PRODUCTS = ("MatMul", "BatchMatMulV2")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset",
        default="base",
        metavar="NAME",
        help=f"one of {', '.join(PRESETS)} (default: %(default)s)",
    )
    parser.add_argument(
        "--steps",
        type=positive(int),
        help="updates (default: those of the preset)",
    )
    parser.add_argument(
        "--vocabulary-size",
        type=positive(int),
        default=37_000,
        help="pieces (Section 5.1; default: %(default)s)",
    )
    parser.add_argument(
        "--batch-tokens",
        type=positive(int),
        default=BATCH_TOKENS,
        help="tokens of a side in an update (Section 5.1; default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--length",
        type=positive(int),
        default=25,
        help="tokens of a sentence, all alike (default: %(default)s)",
    )
    parser.add_argument(
        "--gpus",
        type=positive(int),
        default=GPUS,
        help="devices that train (Section 5.2; default: %(default)s)",
    )
    speeds = ", ".join(f"{name} {speed:g}" for name, speed in SUSTAINED.items())
    parser.add_argument(
        "--flops-per-second",
        type=positive(float),
        default=SUSTAINED["P100"],
        help=f"of one of them, sustained; the paper took {speeds} (default: "
        "%(default)g)",
    )
    parser.add_argument(
        "--hours",
        type=positive(float),
        help="that all updates take (default, with the paper's hardware and "
        "batches: for base and big 12 and 84 as in Section 5.2, less for fewer "
        "--steps)",
    )


def hardware_flops(gpus: int, hours: float, flops_per_second: float) -> float:
    """Returns the paper's estimate: devices, seconds and speed multiplied."""
    return gpus * hours * 3600 * flops_per_second


def update_flops(
    preset: Preset, vocabulary_size: int, rows: int, length: int
) -> int:
    """Counts the matrix products in the graph of one update.

    Args:
        preset: Sizes of the model.
        vocabulary_size: Int, `V`.
        rows: Int, pairs of sentences in the batch.
        length: Int, tokens of each sentence; none is padding.

    Returns:
        Floating point operations, two for each multiplication with its
        addition.
    """
    transformer = Transformer.from_preset(
        preset, vocabulary_size, sequence_length=length
    )
    task = TeacherForcing(transformer, preset.recipe.label_smoothing)
    task.build()
    task.compile(keras.optimizers.SGD())  # Any optimizer: it is not applied.
    ids = tf.TensorSpec((1, rows, length), tf.int32)
    batch = dict.fromkeys(("source_ids", "target_ids", "labels"), ids)
    batch["num_tokens"] = tf.TensorSpec((), tf.float32)
    update = tf.function(task.gradients, autograph=False)
    graph = update.get_concrete_function(batch).graph
    return count_products(graph, rows * length)


def count_products(graph: tf.Graph, num_tokens: int) -> int:
    """Returns the floating point operations of a graph's matrix products.

    Args:
        graph: A graph whose shapes are known but for the number of real target
            tokens, which the graph finds out when it runs.
        num_tokens: Int, that number.
    """
    total = 0
    for operation in graph.get_operations():
        if operation.type not in PRODUCTS:
            continue
        left, output = (
            [num_tokens if size is None else size for size in tensor.shape]
            for tensor in (operation.inputs[0], operation.outputs[0])
        )
        flag = "transpose_a" if operation.type == "MatMul" else "adj_x"
        inner = left[-2] if operation.get_attr(flag) else left[-1]
        total += 2 * math.prod(output) * inner
    return total


def papers_hours(args: argparse.Namespace, steps: int) -> float | None:
    """Returns the paper's time, if the model and all else are the paper's."""
    asked = args.gpus, args.flops_per_second, args.batch_tokens
    same = asked == (GPUS, SUSTAINED["P100"], BATCH_TOKENS)
    if not same or args.preset not in HOURS:
        return None
    return HOURS[args.preset] * steps / PRESETS[args.preset].recipe.steps


def run(args: argparse.Namespace) -> None:
    try:
        preset = find_preset(args.preset)
    except ValueError as error:
        raise UserError(str(error).replace("`preset`", "--preset")) from None
    if args.length > args.batch_tokens:
        raise UserError(
            "--length must not be above --batch-tokens. Received: --length "
            f"{args.length} --batch-tokens {args.batch_tokens}"
        )
    steps = args.steps or preset.recipe.steps
    rows = args.batch_tokens // args.length
    an_update = update_flops(preset, args.vocabulary_size, rows, args.length)
    products = steps * an_update
    lines = [
        f"{args.preset}: {steps:,} updates of {rows:,} pairs of sentences, "
        f"{args.length} tokens each, {args.vocabulary_size:,} pieces",
        "",
        "| reckoning | FLOPs |",
        "|---|---|",
    ]
    papers = papers_hours(args, steps)
    if hours := args.hours or papers:
        hardware = hardware_flops(args.gpus, hours, args.flops_per_second)
        lines.append(
            f"| {'given' if args.hours else 'the paper'}: {args.gpus} GPU"
            f"{'s'[: args.gpus > 1]}, {hours:g} hours, "
            f"{args.flops_per_second:g} FLOP/s each | {hardware:.2g} |"
        )
    if args.preset in PRINTED:
        lines.append(f"| printed in Table 2 | {PRINTED[args.preset]:.2g} |")
    lines.append(
        f"| matrix products: {an_update:.3g} an update | {products:.2g} |"
    )
    print("\n".join(lines))
    if hours:
        print(f"\nThe products are {products / hardware:.0%} of the first.")
    else:
        print(
            f"\nThe paper has no time for {args.preset} with this hardware and "
            "these batches: see --hours."
        )
