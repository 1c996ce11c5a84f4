"""Report before training on the corpus, its batches and the size of the model."""

import pathlib

import numpy as np

from command_line.text_files import write_json
from keras_transformer import Recipe
from train.data.batch_plan import BatchPlan
from train.data.corpus_statistics import count_overlap
from train.data.encoded_corpus import Encoded

FEW_PAIRS = 1_000
MANY_TOO_LONG = 0.1  # Share of the pairs.


def describe_training(
    training: Encoded,
    validation: Encoded,
    plan: BatchPlan,
    parameters: int,
    recipe: Recipe,
) -> dict:
    """Returns the report, as JSON."""
    overlap = count_overlap(training.hashes, np.concatenate(validation.hashes))
    return {
        "training": training.figures,
        "validation": {**validation.figures, "in_training": overlap},
        "batches": {
            "shapes": plan.shapes,
            "fill": plan.fill,
            "tokens_per_pass": plan.tokens,
            "target_tokens_per_pass": plan.target_tokens,
            "batches_per_pass": plan.batches_per_pass,
        },
        "model": {
            "parameters": parameters,
            "steps": recipe.steps,
            "warmup_steps": recipe.warmup_steps,
        },
    }


def write_report(report: dict, run_dir: pathlib.Path) -> None:
    """Writes `report.json`, and prints the report unless that held it before."""
    path = run_dir / "report.json"
    before = path.read_bytes() if path.exists() else None
    write_json(path, report)
    if path.read_bytes() != before:
        print("\n".join([*describe_report(report), *find_warnings(report)]))


def describe_report(report: dict) -> list[str]:
    """Returns the lines of the report for the terminal."""
    batches, model = report["batches"], report["model"]
    overlap = report["validation"]["in_training"]
    passes = model["steps"] / batches["batches_per_pass"]
    shapes = ", ".join("x".join(map(str, s)) for s in batches["shapes"])
    return [
        *describe_text("training", report["training"]),
        *describe_text("validation", report["validation"]),
        f"  in training too: {overlap['sources']:,} sources, "
        f"{overlap['pairs']:,} pairs",
        f"a pass over the corpus: {batches['batches_per_pass']:,} updates, "
        f"{batches['tokens_per_pass']:,} tokens of both sides, "
        f"{batches['fill']:.1%} of all positions",
        f"  rows x source x target: {shapes}",
        f"training: {model['parameters']:,} parameters, {model['steps']:,} "
        f"updates ({passes:.1f} passes)",
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
        f"  {tokens:,} tokens, {figures['unknown_tokens'] / tokens:.3%} unknown, "
        f"{figures['byte_tokens'] / tokens:.3%} bytes of rare characters",
        f"  {figures['round_trip_failures']:,} of {figures['round_trips']:,} "
        "lines that were decoded again came back changed",
    ]
    if figures["round_trip_example"]:
        line, back = figures["round_trip_example"]
        lines[3] += f", such as {line[:60]!r} as {back[:60]!r}"
    return lines


def find_warnings(report: dict) -> list[str]:
    """Returns warnings of what the options probably did not mean."""
    found = []
    for name in ("training", "validation"):
        figures = report[name]
        share = figures["too_long"] / figures["pairs"]
        if share > MANY_TOO_LONG:
            found.append(
                f"warning: {share:.0%} of the {name} pairs are dropped, since "
                "they are longer than --max-length "
                f"{len(figures['source_lengths']) - 1}: take a higher one, or "
                "split the text into sentences"
            )
    if (kept := report["training"]["kept"]) < FEW_PAIRS:
        found.append(
            f"warning: {kept:,} training pairs are few: the model learns them by "
            "heart, and hardly translates other sentences"
        )
    model = report["model"]
    if model["steps"] <= model["warmup_steps"]:
        found.append(
            "warning: the learning rate rises until update "
            f"{model['warmup_steps']:,}, and so to the end: take more --steps, "
            "or fewer --warmup-steps"
        )
    return found
