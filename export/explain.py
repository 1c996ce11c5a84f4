"""Draws how an exported model translates a sentence, as one HTML file.

Attention of every layer and head, alignment, confidence, and the search. The
file needs no network.
"""

import argparse
import json
import pathlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from export.bundle.saved_model import FILE
from export.bundle.saved_model import SIGNATURE
from export.bundle.saved_model import load_version
from export.bundle.versions import newest_version

SIGNATURES = (SIGNATURE, "explain", "explain_beam")
PAGE = pathlib.Path(__file__).with_name("explain.html")
DIGITS = 4
# A map of more is too small to read, and too much for a browser.
SHOWN = 64
# What is told of targets, with how many axes of pieces.
OF_TARGETS = {
    "token_log_probabilities": 1,
    "decoder_attention": 2,
    "encoder_decoder_attention": 2,
}


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m export.explain", description=__doc__
    )
    parser.add_argument(
        "--export-dir",
        type=pathlib.Path,
        required=True,
        help="folder that `python -m export` wrote; the newest version is used",
    )
    parser.add_argument("--text", required=True, help="sentence to translate")
    parser.add_argument(
        "--reference", help="a translation to show beside the model's own"
    )
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        required=True,
        metavar="FILE",
        help="HTML file to write",
    )
    return parser.parse_args(argv)


def load_ask(export_dir: pathlib.Path) -> Callable:
    """Loads the newest version of an export.

    Returns:
        Function from the name of a signature and its texts, one each, to the
        dict of its outputs, without their batch axis.

    Raises:
        UserError: If there is none, or if it is damaged or has no signature
            that explains.
    """
    folder = newest_version(export_dir, FILE)
    loaded = load_version(folder)
    missing = [name for name in SIGNATURES if name not in loaded.signatures]
    if missing:
        raise UserError(
            "--export-dir must hold an export with the signatures "
            f"{', '.join(SIGNATURES)}; export the run anew. Received: {folder} "
            f"without {', '.join(missing)}"
        )

    def ask(name, **texts):
        inputs = {key: tf.constant([text]) for key, text in texts.items()}
        outputs = loaded.signatures[name](**inputs)
        return {key: value.numpy()[0] for key, value in outputs.items()}

    return ask


def explain(ask: Callable, text: bytes, reference: bytes | None = None) -> dict:
    """Returns all that the page shows, as JSON.

    Args:
        ask: What `load_ask` returned.
        text: UTF-8.
        reference: UTF-8, a translation to show beside the model's own.

    Raises:
        UserError: If one of them has no token.
    """
    beam = ask("explain_beam", text=text)
    if not beam["kept"].size:
        raise UserError(
            f"--text must hold some text. Received: {readable(text)!r}"
        )
    best = ask(SIGNATURE, text=text)
    targets = {"Translation": best["translation"]}
    if reference is not None:
        targets["Reference"] = reference
    told = {
        name: ask("explain", source=text, target=target)
        for name, target in targets.items()
    }
    if reference is not None and len(told["Reference"]["target_tokens"]) < 2:
        raise UserError(
            "--reference must hold some text. Received: "
            f"{readable(reference)!r}"
        )
    own = told["Translation"]
    path = best_path(beam)
    steps = len(beam["penalties"])
    return {
        "source": {
            "text": readable(text),
            "pieces": len(own["source_tokens"]),
            "tokens": shown(own["source_tokens"], 1),
        },
        "encoder_attention": shown(own["encoder_attention"], 2),
        "targets": [
            {
                "name": name,
                "text": readable(targets[name]),
                "pieces": len(outputs["target_tokens"]),
                "tokens": shown(outputs["target_tokens"], 1),
                "score": plain(outputs["score"]),
                "log_probability": plain(
                    outputs["token_log_probabilities"].sum()
                ),
                **{
                    key: shown(outputs[key], axes)
                    for key, axes in OF_TARGETS.items()
                },
            }
            for name, outputs in told.items()
        ],
        "beam": {
            **{name: plain(value[:SHOWN]) for name, value in beam.items()},
            "best": path[:SHOWN],
            "steps": steps,
        },
        "notes": make_notes(best, beam, path, told),
    }


def make_notes(
    best: dict, beam: dict, path: list[int], told: dict
) -> list[str]:
    """Returns what a reader must know of this translation, as sentences.

    Args:
        best: What the default signature answered.
        beam: What `explain_beam` answered.
        path: What `best_path` returned.
        told: Dict from the name of a target to what `explain` answered.
    """
    notes = []
    if best["truncated"]:
        notes.append(
            "The source or the translation was cut at the limit of its length."
        )
    notes.extend(
        f"{name}: the text is longer than the model takes and was cut. Score, "
        "confidence and attention are those of the part that is shown."
        for name, outputs in told.items()
        if outputs["target_truncated"]
    )
    pieces = [
        count
        for outputs in told.values()
        for count in (
            len(outputs["source_tokens"]),
            len(outputs["target_tokens"]),
        )
    ]
    if max(*pieces, len(beam["penalties"])) > SHOWN:
        notes.append(
            f"Only the first {SHOWN} pieces and steps are shown. Texts and "
            "scores are whole."
        )
    own = told["Translation"]
    written = [beam["tokens"][step, rank] for step, rank in enumerate(path)]
    same = written == own["target_tokens"].tolist()
    if not same and not own["target_truncated"]:
        notes.append(
            "The search wrote the translation in other pieces than those into "
            "which its text is cut. Confidence and attention are those of the "
            "text, and its score differs a little from that in the search."
        )
    return notes


def best_path(beam: dict) -> list[int]:
    """Returns the best translation's candidate in each step of its search."""
    scores = beam["log_probabilities"] / beam["penalties"][:, None]
    found = np.where(beam["kept"] & beam["ended"], scores, -np.inf)
    step, place = np.unravel_index(found.argmax(), found.shape)
    path = []
    while step >= 0:
        path.append(int(place))
        step, place = step - 1, beam["parents"][step, place]
    return path[::-1]


def shown(value: np.ndarray, axes: int):
    """Returns the first pieces along the last axes, as lists."""
    return plain(value[(..., *[slice(SHOWN)] * axes)])


def plain(value: np.ndarray):
    """Returns an array as lists, floats rounded, strings read."""
    if value.dtype.kind == "f":
        return np.round(value.astype(np.float64), DIGITS).tolist()
    if value.dtype.kind == "O":
        return [
            readable(item) if isinstance(item, bytes) else plain(item)
            for item in value
        ]
    return value.tolist()


def readable(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")


def render(data: dict) -> str:
    """Returns the page that shows `data`, whole: style, script and numbers."""
    page = PAGE.read_text("utf-8")
    for name in ("css", "js"):
        part = PAGE.with_suffix(f".{name}").read_text("utf-8")
        page = page.replace(f"{{{name}}}", part)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # No text may close the element that holds it.
    return page.replace("{data}", text.replace("<", "\\u003c"))


def run(args: argparse.Namespace) -> None:
    ask = load_ask(args.export_dir)
    # What is no UTF-8 on the command line comes as surrogates.
    text, reference = (
        None if given is None else given.encode("utf-8", "surrogateescape")
        for given in (args.text, args.reference)
    )
    data = explain(ask, text, reference)
    args.output.write_text(render(data), encoding="utf-8")
    print(f"{args.output} is written. Open it in a browser")


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    with exit_on_user_error():
        run(args)


if __name__ == "__main__":
    main()
