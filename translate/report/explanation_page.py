"""Builds the data and HTML of the report of `translate.explain`.

The page consists of `explain.html`, `explain.css` and `explain.js`, in this
folder, with `shared.css` and `shared.js`.
"""

import json
import pathlib
from collections.abc import Callable

import numpy as np

from command_line.errors import UserError
from export.bundle.run_loading import SIGNATURE

SIGNATURES = (SIGNATURE, "explain", "explain_beam")
PAGE = pathlib.Path(__file__).with_name("explain.html")
DIGITS = 4
# Larger heat maps are unreadable, and slow in a browser.
MAX_SHOWN = 64
# Outputs of a target, with their number of subword axes.
OF_TARGETS = {
    "token_log_probabilities": 1,
    "decoder_attention": 2,
    "encoder_decoder_attention": 2,
}
RECURRENT_DECODER_NOTE = (
    "The decoder has a recurrence in the place of self-attention: it keeps one "
    "vector of the subwords before, so there are no weights of these to show."
)


def describe_translation(ask: Callable, text: bytes) -> dict:
    """Returns the data of the page, as JSON; `ask` is `Runtime.ask_one`.

    Raises:
        UserError: If the text has no token.
    """
    beam = ask("explain_beam", text=text)
    if not beam["kept"].size:
        raise UserError(f"--text must hold some text. Received: {decode(text)!r}")
    best = ask(SIGNATURE, text=text)
    explained = ask("explain", source=text, target=best["translation"])
    path = best_path(beam)
    return {
        "source": describe_text(text, explained["source_tokens"]),
        "encoder_attention": to_cropped_lists(explained["encoder_attention"], 2),
        "target": describe_target(best["translation"], explained),
        "beam": {
            **{name: to_lists(value[:MAX_SHOWN]) for name, value in beam.items()},
            "best": path[:MAX_SHOWN],
            "steps": len(beam["penalties"]),
        },
        "notes": make_notes(best, beam, path, explained),
    }


def describe_text(text: bytes, tokens: np.ndarray) -> dict:
    shown = to_cropped_lists(tokens, 1)
    return {"text": decode(text), "pieces": len(tokens), "tokens": shown}


def describe_target(text: bytes, outputs: dict) -> dict:
    """Returns the data of a target, by the outputs of the signature `explain`."""
    return {
        **describe_text(text, outputs["target_tokens"]),
        "score": to_lists(outputs["score"]),
        "log_probability": to_lists(outputs["token_log_probabilities"].sum()),
        **{
            key: to_cropped_lists(outputs[key], axes)
            for key, axes in OF_TARGETS.items()
            if key != "decoder_attention" or has_self_attention(outputs)
        },
    }


def has_self_attention(outputs: dict) -> bool:
    return bool(outputs["decoder_attention"].any())


def make_notes(best: dict, beam: dict, path: list[int], explained: dict) -> list[str]:
    """Returns notes on this translation, as sentences."""
    pieces = max(
        len(explained["source_tokens"]),
        len(explained["target_tokens"]),
        len(beam["penalties"]),
    )
    written = [beam["tokens"][step, rank] for step, rank in enumerate(path)]
    same = written == explained["target_tokens"].tolist()
    notes = [
        (not has_self_attention(explained), RECURRENT_DECODER_NOTE),
        (
            best["truncated"],
            "The source or the translation was cut at the limit of its length.",
        ),
        (
            explained["truncated"],
            "The translation or the source is longer than the model takes and was "
            "cut. Score, confidence and attention are those of the part that is "
            "shown.",
        ),
        (
            pieces > MAX_SHOWN,
            f"Only the first {MAX_SHOWN} subwords and steps are shown. Texts "
            "and scores are whole.",
        ),
        (
            not same and not explained["truncated"],
            "The search wrote the translation in other subwords than those "
            "into which its text is cut. Confidence and attention are those of "
            "the text, and its score differs a little from that in the search.",
        ),
    ]
    return [note for holds, note in notes if holds]


def best_path(beam: dict) -> list[int]:
    """Returns the index of the best translation's candidate at each step."""
    scores = beam["log_probabilities"] / beam["penalties"][:, None]
    found = np.where(beam["kept"] & beam["ended"], scores, -np.inf)
    step, place = np.unravel_index(found.argmax(), found.shape)
    path = []
    while step >= 0:
        path.append(int(place))
        step, place = step - 1, beam["parents"][step, place]
    return path[::-1]


def to_cropped_lists(value: np.ndarray, axes: int):
    """Returns an array as lists, cut to the subwords that the page shows."""
    return to_lists(value[(..., *[slice(MAX_SHOWN)] * axes)])


def to_lists(value: np.ndarray):
    """Returns an array as lists, with floats rounded and strings decoded."""
    if value.dtype.kind == "f":
        return np.round(value.astype(np.float64), DIGITS).tolist()
    if value.dtype.kind == "O":
        return [decode(x) if isinstance(x, bytes) else to_lists(x) for x in value]
    return value.tolist()


def decode(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")


def read_with_shared(path: pathlib.Path) -> str:
    """Reads a style or script, after what the service's page shares with it."""
    shared = PAGE.with_name(f"shared{path.suffix}")
    return shared.read_text("utf-8") + path.read_text("utf-8")


def render(data: dict) -> str:
    """Returns the complete page for `data`, with style and script."""
    page = PAGE.read_text("utf-8")
    for name in ("css", "js"):
        part = read_with_shared(PAGE.with_suffix(f".{name}"))
        page = page.replace(f"{{{name}}}", part)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # Text must not close the HTML element that contains it.
    return page.replace("{data}", text.replace("<", "\\u003c"))
