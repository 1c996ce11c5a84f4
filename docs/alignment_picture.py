"""Draws a translation and the alignment of its words, as an SVG file.

    python -m docs.alignment_picture --export-dir exports/en-pt \\
        --text "When it rains, the children stay inside." \\
        --output docs/alignment.svg

The export must have the signature `align` (`export --signatures all`). The
width of a line is the attention of a word of the translation to a word of the
source.
"""

import argparse
import html
import pathlib

import numpy as np

from documents.markup.word_alignment import find_words
from translate.loading import load_export

CHARACTER = 11  # Pixels of a character, about.
SPACE = 14
HEIGHTS = 34, 160  # Baselines of source and translation.
LEAST = 0.1  # Attention below is not drawn.
STYLE = """
text { font: 20px sans-serif; fill: #1f2328; text-anchor: middle; }
line { stroke: #3f51b5; stroke-linecap: round; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } line { stroke: #9fa8da; }
}
"""


def align(export_dir: pathlib.Path, text: str) -> tuple[str, np.ndarray]:
    """Returns the translation, and the attention between words.

    Args:
        export_dir: Folder of an export.
        text: The sentence.

    Returns:
        The translation, and a float array `(target words, source words)`.
    """
    runtime = load_export(export_dir)
    target = runtime.translate([text])[0].text
    (weights,) = runtime.align([(text, target)])
    return target, weights


def place_words(text: str) -> list[tuple[str, float]]:
    """Returns the words of a text, each with its middle in pixels."""
    placed, end = [], SPACE
    for word in find_words(text):
        written = text[word.start : word.end]
        width = CHARACTER * max(2, len(written))
        placed.append((written, end + width / 2))
        end += width + SPACE
    return placed


def draw(text: str, translation: str, weights: np.ndarray) -> str:
    """Returns the SVG."""
    rows = [place_words(text), place_words(translation)]
    width = max(x + CHARACTER * len(word) for row in rows for word, x in row)
    lines = [
        f'<line x1="{x:.0f}" y1="{HEIGHTS[1] - 26}" x2="{rows[0][i][1]:.0f}" '
        f'y2="{HEIGHTS[0] + 10}" stroke-width="{6 * share:.1f}" '
        f'opacity="{share:.2f}"/>'
        for (_, x), shares in zip(rows[1], weights, strict=True)
        for i, share in enumerate(shares)
        if share >= LEAST
    ]
    words = [
        f'<text x="{x:.0f}" y="{y}">{html.escape(word)}</text>'
        for row, y in zip(rows, HEIGHTS, strict=True)
        for word, x in row
    ]
    title = html.escape(f"{text} → {translation}")
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="0 0 {width:.0f} {HEIGHTS[1] + 20}">',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            *lines,
            *words,
            "</svg>\n",
        ]
    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--export-dir", type=pathlib.Path, required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args(argv)
    translation, weights = align(options.export_dir, options.text)
    picture = draw(options.text, translation, weights)
    options.output.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
