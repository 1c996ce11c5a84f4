"""Computes the FLOPs of a training in two ways (Table 2).

The paper multiplies hardware by time: GPUs x seconds x the FLOP/s that one
sustains. The other count is of the work itself: every matrix product in the
graph of an update, forward and backward, times the updates.
"""

import argparse
import dataclasses
import math

import keras
import tensorflow as tf

from command_line.errors import UserError, exit_on_user_error
from command_line.markdown import format_table
from command_line.options import add_options, option, positive, read_options
from keras_transformer import PRESETS, Preset, Transformer
from train.loop.training_model import TrainingModel
from train.resolve_options import require_preset

# "We used values of 2.8, 3.7, 6.0 and 9.5 TFLOPS for K80, K40, M40 and P100."
SUSTAINED = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
GPUS = 8
BATCH_TOKENS = 25_000  # Section 5.1.
HOURS = {"base": 12.0, "big": 3.5 * 24}  # Section 5.2.
PRINTED = {"base": 3.3e18, "big": 2.3e19}
PRODUCTS = ("MatMul", "BatchMatMulV2")
SUSTAINED_TEXT = ", ".join(f"{name} {speed:g}" for name, speed in SUSTAINED.items())


@dataclasses.dataclass(frozen=True)
class CostOptions:
    """Options of the command."""

    preset: str = option("base", f"one of {', '.join(PRESETS)}", metavar="NAME")
    steps: int | None = option(
        None, "updates (default: those of the preset)", kind=positive(int)
    )
    vocabulary_size: int = option(37_000, "subwords (Section 5.1)", kind=positive(int))
    batch_tokens: int = option(
        BATCH_TOKENS, "tokens of a side in an update (Section 5.1)", kind=positive(int)
    )
    length: int = option(25, "tokens of a sentence, all alike", kind=positive(int))
    gpus: int = option(GPUS, "devices that train (Section 5.2)", kind=positive(int))
    flops_per_second: float = option(
        SUSTAINED["P100"],
        f"of one of them, sustained; the paper took {SUSTAINED_TEXT} (default: "
        "%(default)g)",
        kind=positive(float),
    )
    hours: float | None = option(
        None,
        "that all updates take (default, with the paper's hardware and "
        "batches: for base and big 12 and 84 as in Section 5.2, less for fewer "
        "--steps)",
        kind=positive(float),
    )


def hardware_flops(gpus: int, hours: float, flops_per_second: float) -> float:
    """Returns the paper's estimate: devices, seconds and speed multiplied."""
    return gpus * hours * 3600 * flops_per_second


def update_flops(preset: Preset, vocabulary_size: int, rows: int, length: int) -> int:
    """Counts the matrix products in the graph of one update, without padding."""
    transformer = Transformer.from_preset(
        preset, vocabulary_size, sequence_length=length
    )
    task = TrainingModel(transformer, preset.recipe.label_smoothing)
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

    Its shapes are known but for `num_tokens`, the number of real target tokens,
    which the graph finds out when it runs.
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


def hours_in_the_paper(options: CostOptions, steps: int) -> float | None:
    """Returns the paper's time, if the model and all else are the paper's."""
    asked = options.gpus, options.flops_per_second, options.batch_tokens
    same = asked == (GPUS, SUSTAINED["P100"], BATCH_TOKENS)
    name = options.preset
    if not same or name not in HOURS:
        return None
    return HOURS[name] * steps / PRESETS[name].recipe.steps


def run(options: CostOptions) -> None:
    name, length = options.preset, options.length
    preset = require_preset(name)
    if length > options.batch_tokens:
        raise UserError(
            "--length must not be above --batch-tokens. Received: --length "
            f"{length} --batch-tokens {options.batch_tokens}"
        )
    steps = options.steps or preset.recipe.steps
    rows = options.batch_tokens // length
    an_update = update_flops(preset, options.vocabulary_size, rows, length)
    products = steps * an_update
    estimates = []
    if hours := options.hours or hours_in_the_paper(options, steps):
        gpus, speed = options.gpus, options.flops_per_second
        hardware = hardware_flops(gpus, hours, speed)
        whose = "given" if options.hours else "the paper"
        devices = f"{gpus} {'GPUs' if gpus > 1 else 'GPU'}, {hours:g} hours"
        text = f"{whose}: {devices}, {speed:g} FLOP/s each"
        estimates.append([text, f"{hardware:.2g}"])
    if name in PRINTED:
        estimates.append(["printed in Table 2", f"{PRINTED[name]:.2g}"])
    text = f"matrix products: {an_update:.3g} an update"
    estimates.append([text, f"{products:.2g}"])
    print(
        f"{name}: {steps:,} updates of {rows:,} pairs of sentences, "
        f"{length} tokens each, {options.vocabulary_size:,} subwords\n"
    )
    print(format_table(["estimate", "FLOPs"], estimates))
    if hours:
        print(f"\nThe products are {products / hardware:.0%} of the first.")
    else:
        print(
            f"\nThe paper has no time for {name} with this hardware and "
            "these batches: see --hours."
        )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m paper.table2", description=__doc__)
    add_options(parser, CostOptions)
    args = parser.parse_args(argv)
    with exit_on_user_error():
        run(read_options(args, CostOptions))


if __name__ == "__main__":
    main()
