"""Measures sentence splitting on a text whose sentences are known.

Where a sentence ends in no stop, as headings and what is spoken do, a new line
begins, as it would on a page; only ends within a line are counted. The same is
measured in lower case.
"""

import argparse
import pathlib
import re

import numpy as np
import tensorflow as tf

from command_line.errors import exit_on_user_error
from command_line.text_files import read_lines
from export.model.sentence_splitting import split_text

# Characters after a full stop that belong to its sentence.
STOPPED = re.compile(r"[.!?…][\"'”’)\]]*$")


def measure(sentences: list[str], language: str) -> dict[str, float]:
    """Returns precision, recall and F1 of the ends of sentences in lines."""
    gaps = [" " if STOPPED.search(s) else "\n" for s in sentences]
    text = "".join(map("".join, zip(sentences, gaps, strict=True)))
    parts, is_sentence = split_text(tf.constant([text]), language)
    lengths = [len(part.decode()) for part in parts[0].numpy()]
    ends = np.cumsum(lengths)[is_sentence[0].numpy()]
    found = {end for end in ends if text[end] == " "}
    ends = np.cumsum([len(s) + 1 for s in sentences]) - 1
    wanted = {end for end in ends if text[end] == " "}
    right = len(found & wanted)
    return {
        "sentences": len(sentences),
        "ends": len(wanted),
        "precision": right / len(found),
        "recall": right / len(wanted),
        "F1": 2 * right / (len(found) + len(wanted)),
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sentence_splitting_accuracy", description=__doc__
    )
    parser.add_argument(
        "--input",
        type=pathlib.Path,
        required=True,
        help="text, one sentence a line, plain or gzip",
    )
    parser.add_argument("--language", default="en", help="code of ISO 639-1")
    options = parser.parse_args(argv)
    with exit_on_user_error():
        sentences = list(read_lines(options.input))
        found = measure(sentences, options.language)
        lower = measure([s.lower() for s in sentences], options.language)
    print("| | as written | in lower case |\n|---|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value:,.4g} | {lower[name]:,.4g} |")


if __name__ == "__main__":
    main()
