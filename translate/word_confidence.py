"""Groups subwords into words, with their alignment and confidence."""

import re

import numpy as np

from documents.markup.word_alignment import SPACELESS

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's symbol for a blank.
BYTE = re.compile("<0x([0-9A-F]{2})>")
# Of scripts without blanks between words, each subword counts as a word.
UNSPACED = re.compile(f"[{''.join(f'{chr(a)}-{chr(b)}' for a, b in SPACELESS)}]")
END = b"</s>"
DIGITS = 3


def group_words(
    source_pieces: np.ndarray,
    target_pieces: np.ndarray,
    attention: np.ndarray,
    log_probabilities: np.ndarray,
) -> dict:
    """Returns the words of a sentence and of its translation.

    Args:
        source_pieces: Bytes `(S,)`, ended by `</s>` and padded with `b""`.
        target_pieces: Bytes `(T,)`, alike.
        attention: Float array `(T, S)`, weights of each target subword.
        log_probabilities: Float array `(T,)`, of the target pieces.

    Returns:
        Dict of `"source"` and `"target"`, lists of dicts of `"text"` and `"space"`,
        whether a blank precedes it; those of the target also have `"probability"`,
        the product over its subwords, and `"weights"`, one for each source word.
    """
    sources, targets = (pieces_to_words(source_pieces), pieces_to_words(target_pieces))
    for word in targets:
        indices = word["indices"]
        weights = attention[indices].mean(axis=0)
        word["probability"] = round_probability(
            np.exp(log_probabilities[indices].sum())
        )
        word["weights"] = [
            round_probability(weights[s["indices"]].sum()) for s in sources
        ]
    for word in (*sources, *targets):
        del word["indices"]
    return {"source": sources, "target": targets}


def pieces_to_words(pieces: np.ndarray) -> list[dict]:
    """Returns words: dicts of `text`, `space` and `indices`, of subwords."""
    words = []
    for index, piece in enumerate(pieces):
        if piece in (b"", END):
            break
        text = piece.decode("utf-8", "replace")
        byte = BYTE.fullmatch(text)
        begins = text.startswith(SPACE)
        text = text.replace(SPACE, " ").removeprefix(" ")
        apart = UNSPACED.match(text) and words and words[-1]["bytes"]
        if not words or begins or apart:
            words.append({"bytes": b"", "space": begins, "indices": []})
        words[-1]["bytes"] += bytes([int(byte[1], 16)]) if byte else text.encode()
        words[-1]["indices"].append(index)
    if words:
        words[0]["space"] = False  # The tokenizer puts one there.
    return [
        {
            "text": word["bytes"].decode("utf-8", "ignore"),
            "space": word["space"],
            "indices": word["indices"],
        }
        for word in words
    ]


def round_probability(number: float) -> float:
    return round(float(number), DIGITS)
