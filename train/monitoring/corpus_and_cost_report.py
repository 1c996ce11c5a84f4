"""Report before training: corpus statistics, batch sizes and cost estimates."""

import pathlib

import numpy as np
import tensorflow as tf

from command_line.text_files import write_json
from keras_transformer import Recipe, Transformer
from train.data.batch_plan import BatchPlan
from train.data.corpus import SIDES
from train.data.corpus_statistics import count_overlap, unknown_share
from train.data.encoded_corpus import Encoded
from train.data.encoded_pairs import EncodedPairs
from train.loop.update_options import UpdateOptions
from train.monitoring.cost_estimates import (
    count_flops,
    count_positions,
    estimate_memory,
    micro_batch_shapes,
)

BINS = 12
BAR = 24
MANY_TOO_LONG = 0.1  # Share of the pairs.
BUSY = 1_024  # Approximate number of positions of a side that keeps a GPU busy.


def describe_training(
    training: Encoded,
    validation: Encoded,
    plan: BatchPlan,
    transformer: Transformer,
    recipe: Recipe,
    update_options: UpdateOptions,
    num_replicas: int = 1,
) -> dict:
    """Returns the report on corpus, batches and costs, as JSON."""
    limit, precision = update_options.max_tokens_per_replica, update_options.precision
    shapes = micro_batch_shapes(plan, num_replicas, limit)
    needed = [estimate_memory(transformer, shape, precision) for shape in shapes]
    flops = count_flops(transformer, plan)
    return {
        "training": training.figures,
        "validation": {
            **validation.figures,
            "in_training": count_overlap(
                training.hashes, np.concatenate(validation.hashes)
            ),
        },
        "batches": {
            "shapes": plan.shapes,
            "fill": plan.fill,
            "tokens_per_pass": plan.tokens,
            "target_tokens_per_pass": plan.target_tokens,
            "batches_per_pass": plan.batches_per_pass,
            "positions_per_device": count_positions(plan) // num_replicas,
        },
        "model": {
            "parameters": transformer.count_params(),
            "flops_per_step": flops,
            "steps": recipe.steps,
            "warmup_steps": recipe.warmup_steps,
            "flops": flops * recipe.steps,
            "memory_bytes": max(needed, key=lambda parts: sum(parts.values())),
        },
    }


def write_report(report: dict, run_dir: pathlib.Path) -> None:
    """Prints a report and writes `report.json`."""
    print(format_report(report))
    write_json(run_dir / "report.json", report)


def warn_of_idle_gpus(report: dict, strategy: tf.distribute.Strategy) -> None:
    """Prints a warning if GPUs get too few tokens an update to be busy."""
    positions = report["batches"]["positions_per_device"]
    # TensorFlow's default strategy has no list of devices.
    default = strategy is tf.distribute.get_strategy()
    devices = () if default else strategy.extended.worker_devices
    if positions < BUSY and any("GPU" in device for device in devices):
        print(
            f"warning: a GPU gets {positions:,} positions of a side an update, "
            f"too few to be busy (below {BUSY:,}): take more --batch-tokens, "
            "or fewer GPUs"
        )


def warn_of_dropped_pairs(report: dict) -> None:
    """Prints a warning if many pairs are dropped as too long."""
    for name in ("training", "validation"):
        figures = report[name]
        share = figures["too_long"] / figures["pairs"]
        if share > MANY_TOO_LONG:
            print(
                f"warning: {share:.0%} of the {name} pairs are dropped, since "
                "they are longer than --max-length "
                f"{len(figures['source_lengths']) - 1}: take a higher one, or "
                "split the text into sentences"
            )


def warn_of_unknown_text(
    pairs: EncodedPairs, protos: tuple[bytes, bytes | None]
) -> None:
    """Prints a warning if most of the text is unknown to a tokenizer.

    Then the text has another language or script than the model's training
    text.
    """
    of_sides = protos[0], protos[1] or protos[0]
    unknown = [
        f"{measured:.0%} of the {side}s' subwords"
        for side, ids, proto in zip(
            SIDES, (pairs.sources, pairs.targets), of_sides, strict=True
        )
        if (measured := unknown_share(ids, proto)) > 1 / 2
    ]
    if unknown:
        print(
            f"warning: {' and '.join(unknown)} are unknown, or bytes of "
            "unknown characters: was the model of --init-from trained for "
            "these languages?"
        )


def format_report(report: dict) -> str:
    """Returns the report as text for the terminal."""
    batches, model = report["batches"], report["model"]
    memory = sum(model["memory_bytes"].values())
    overlap = report["validation"]["in_training"]
    passes = model["steps"] / batches["batches_per_pass"]
    shapes = ", ".join("x".join(map(str, s)) for s in batches["shapes"])
    return "\n".join(
        [
            *describe_text("training", report["training"]),
            *describe_text("validation", report["validation"]),
            f"  in training too: {overlap['sources']:,} sources, "
            f"{overlap['pairs']:,} pairs",
            *format_histogram(report["training"]),
            f"a pass over the corpus: {batches['batches_per_pass']:,} updates, "
            f"{batches['tokens_per_pass']:,} tokens of both sides, "
            f"{batches['fill']:.1%} of all positions",
            f"  rows x source x target: {shapes}",
            f"model: {model['parameters']:,} parameters, about "
            f"{memory / 1e9:.2g} GB a device",
            f"training: {model['steps']:,} updates ({passes:.1f} passes) of "
            f"{model['flops_per_step']:.2g} FLOPs, {model['flops']:.2g} in all",
            *describe_warmup(model),
        ]
    )


def describe_warmup(model: dict) -> list[str]:
    """Returns a warning if the learning rate never decreases."""
    if model["steps"] > model["warmup_steps"]:
        return []
    return [
        f"  the learning rate rises until update {model['warmup_steps']:,}, "
        "and so to the end: take more --steps, or fewer --warmup-steps"
    ]


def describe_text(name: str, figures: dict) -> list[str]:
    """Returns the lines about the text of a corpus."""
    tokens = figures["source_tokens"] + figures["target_tokens"]
    lines = [
        f"{name}: {figures['pairs']:,} pairs read, {figures['kept']:,} kept, "
        f"{figures['empty']:,} empty and {figures['too_long']:,} too long "
        f"dropped (the longest line has {figures['longest']:,} tokens)",
        f"  of the kept: {figures['duplicates']:,} came before, "
        f"{figures['source_equals_target']:,} have source = target",
        f"  {tokens:,} tokens, {as_share(figures['unknown_tokens'], tokens)} "
        f"unknown, {as_share(figures['byte_tokens'], tokens)} bytes of rare "
        "characters",
        f"  {figures['round_trip_failures']:,} of {figures['round_trips']:,} "
        "lines that were decoded again came back changed",
    ]
    if figures["round_trip_example"]:
        line, back = figures["round_trip_example"]
        lines[3] += f", such as {line[:60]!r} as {back[:60]!r}"
    return lines


def as_share(part: int, whole: int) -> str:
    return f"{part / whole:.3%}"


def format_histogram(figures: dict) -> list[str]:
    """Returns the histogram of lengths of both sides, one line for each bin."""
    counts = [np.array(figures[f"{side}_lengths"]) for side in SIDES]
    longest = max(int(np.flatnonzero(side).max()) for side in counts)
    width = -(-longest // BINS)
    edges = np.arange(1, longest + 1, width)
    shares = [np.add.reduceat(side[: longest + 1], edges) for side in counts]
    shares = [side / side.sum() for side in shares]
    top = max(side.max() for side in shares)
    lines = [f"{'tokens':>9}  {'sources':<{BAR + 6}}  targets"]
    for edge, *row in zip(edges.tolist(), *shares, strict=True):
        label = f"{edge}-{min(edge + width - 1, longest)}"
        bars = [
            f"{'#' * round(BAR * value / top):<{BAR}} {value:5.1%}" for value in row
        ]
        lines.append(f"{label:>9}  {'  '.join(bars)}")
    return lines
