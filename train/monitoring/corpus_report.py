"""Report before training on the corpus, its batches and the size of the model."""

import os
import pathlib
import unicodedata

import numpy as np

from command_line.errors import UserError
from command_line.text_files import write_json
from keras_transformer import Recipe
from text_processing.preprocessing_signs import SIGNS
from train.data.batch_plan import BatchPlan
from train.data.corpus import SIDES
from train.data.encoded_corpus import Encoded
from train.data.encoding import hash_pairs

FEW_PAIRS = 1_000
MANY_TOO_LONG = 0.1  # Share of the pairs.
MANY_IN_TRAINING = 0.01  # Share of the validation pairs.
MANY_COPIES = 0.2  # Share of the training pairs.
CHUNK = 1 << 20  # Hashes that are read together.
# Characters of a changed line that are shown, and those before the change.
SHOWN, SHOWN_BEFORE = 60, 20


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


def count_overlap(training: list[np.ndarray], validation: np.ndarray) -> dict:
    """Counts the validation sources and pairs that are in the training corpus.

    Both are given by their hashes, uint64 `(n, 2)`.
    """
    return {
        "sources": count_members(validation[:, 0], training, lambda h: h[:, 0]),
        "pairs": count_members(hash_pairs(validation), training, hash_pairs),
    }


def count_members(wanted: np.ndarray, parts: list[np.ndarray], of) -> int:
    """Counts the `wanted` that are among `of(hashes)` of all parts."""
    found = np.zeros(len(wanted), bool)
    for hashes in parts:
        for start in range(0, len(hashes), CHUNK):
            found |= np.isin(wanted, of(hashes[start : start + CHUNK]))
    return int(found.sum())


def refuse_known_validation(report: dict) -> None:
    """Raises `UserError` if all validation pairs are in training."""
    kept = report["validation"]["kept"]
    if report["validation"]["in_training"]["pairs"] == kept:
        raise UserError(
            "validation pairs must be others than the training pairs, or come with "
            f"--allow-validation-in-training. Received: {kept:,}, all in training"
        )


def write_report(report: dict, run_dir: pathlib.Path) -> None:
    """Writes `report.json`, and prints the report unless that held it before."""
    path = run_dir / "report.json"
    before = path.read_bytes() if path.exists() else None
    write_json(path, report)
    if path.read_bytes() != before:
        print("\n".join([*find_warnings(report), *describe_report(report)]))


def describe_report(report: dict) -> list[str]:
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
        line, back = show_change(*figures["round_trip_example"])
        lines[3] += f", such as {line} as {back}"
    return lines


def show_change(line: str, back: str) -> list[str]:
    """Returns what two lines have around their first difference, quoted."""
    first = len(os.path.commonprefix([line, back]))
    start = max(0, first - SHOWN_BEFORE)
    shown = [text[start : start + SHOWN] for text in (line, back)]
    # Text that looks the same is shown by its code points.
    same = len({unicodedata.normalize("NFC", text) for text in shown}) == 1
    return [f"{'…' if start else ''}{(ascii if same else repr)(t)}" for t in shown]


def find_warnings(report: dict) -> list[str]:
    """Returns warnings of what the options probably did not mean."""
    found = describe_preprocessing(report["training"])
    validation = report["validation"]
    repeated = validation["in_training"]["pairs"]
    if repeated > MANY_IN_TRAINING * validation["kept"]:
        found.append(
            f"warning: {repeated:,} of the {validation['kept']:,} validation pairs are "
            "in training: their scores are those of text that the model has seen"
        )
    training = report["training"]
    copies = training["source_equals_target"] / training["kept"]
    if copies > MANY_COPIES:
        found.append(
            f"warning: {copies:.0%} of the training pairs have a source that is the "
            "target: the model learns to copy"
        )
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
    if (kept := training["kept"]) < FEW_PAIRS:
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


def describe_preprocessing(figures: dict) -> list[str]:
    """Returns a warning if the text looks as if it was changed before."""
    checked = figures["round_trips"] // len(SIDES)
    found = [
        f"  {figures[f'{side}_{name}'] / checked:.0%} of the {side}s {sign.description}"
        for side in SIDES
        for name, sign in SIGNS.items()
        if figures[f"{side}_{name}"] > sign.max_share * checked
    ]
    warning = "warning: sentences to translate must look as the training text does:"
    return [warning, *found] if found else []
