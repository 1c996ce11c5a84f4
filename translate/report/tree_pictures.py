"""Draws parse trees in an HTML file with svgling."""

import html
import importlib
import pathlib
from collections.abc import Iterable

from command_line.errors import UserError
from text_processing.trees import LEAF, ROOT, Tree

PICTURES = 10
MAX_DEPTH = 50  # svgling is recursive.
PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Parses</title>
<style>
body {{ font-family: sans-serif; margin: 2em; color: #111; background: #fff }}
figure {{ margin: 1em 0; overflow-x: auto }}
</style>
<h1>Parses</h1>
<p>The first {count} sentences. Of each, the parse, then the tree of the
treebank.</p>
{sections}
</html>
"""
SECTION = """<section>
<h2>{sentence}</h2>
<p>{matched} brackets match, of {parsed} in the parse and {gold} in the
treebank.</p>
<figure><figcaption>Parse</figcaption>{parse_picture}</figure>
<figure><figcaption>Treebank</figcaption>{gold_picture}</figure>
</section>"""


def load_svgling():
    """Imports svgling, or says how to install it."""
    try:
        return importlib.import_module("svgling")
    except ModuleNotFoundError:
        raise UserError("--picture needs svgling: pip install svgling") from None


def write_pictures(
    path: pathlib.Path, parses: Iterable[tuple[Tree, Tree, int, int, int]]
) -> None:
    """Writes reference trees and a model's trees side by side.

    Args:
        path: Path of the HTML file.
        parses: For each sentence, the reference tree, the parse, and the
            numbers of brackets that match, of the reference and of the parse.
    """
    sections = [
        SECTION.format(
            sentence=html.escape(" ".join(gold.words)),
            matched=matched,
            parsed=in_parse,
            gold=in_gold,
            parse_picture=draw(parse),
            gold_picture=draw(gold),
        )
        for gold, parse, matched, in_gold, in_parse in parses
    ]
    page = PAGE.format(count=len(sections), sections="\n".join(sections))
    path.write_text(page, encoding="utf-8")


def draw(tree: Tree) -> str:
    """Returns SVG, or the tree as text if it is too deep to draw."""
    # Nested tuples of label and children, which svgling draws.
    words, still_open, depth = iter(tree.words), [[ROOT]], 0
    for symbol in tree.symbols:
        if symbol == LEAF:
            still_open[-1].append(next(words))
        elif symbol[0] == "(":
            still_open.append([symbol[1:]])
            depth = max(depth, len(still_open))
        else:
            still_open[-2].append(tuple(still_open.pop()))
    if depth > MAX_DEPTH:
        return f"<pre>{html.escape(str(tree))}</pre>"
    return load_svgling().draw_tree(tuple(still_open[0]))._repr_svg_()
