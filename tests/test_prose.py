"""Docstrings, comments and pages keep to plain technical English."""

import ast
import io
import pathlib
import re
import tokenize

import pytest

ROOT = pathlib.Path(__file__).parent.parent
# Metaphors, and sentences whose subject is a clause with "What" or "Who".
BANNED = re.compile(
    r"\b(?i:hangs? on|reckon\w*|mend(s|ed|ing)?|looks? at|looked at|tells|"
    r"(is|are|be) told|is no UTF-8|stands? behind|whoever|goes on|"
    r"beams? that (lives?|dies?|ends?)|(begin|end)(ning)? symbol|"
    r"whole texts?|rehears\w+)\b"
    r"|(^|[.:] )(What|Who) [^.?!:]*[.!:]"
)
PAGES = [
    *(ROOT / "docs").glob("*.md"),
    *ROOT.glob("*.md"),
    ROOT / "benchmarks/README.md",
]
FOLDERS = (
    *("keras_transformer", "train", "export", "convert", "command_line"),
    *("paper", "demo_corpus", "benchmarks", "examples", "docs", "tests"),
)


def prose_of(path):
    """Yields docstrings and comments, or the text outside of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
        yield re.sub(r"`[^`]*`|\*[^*\n]+\*", "", text)
        return
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, kinds):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("# ")


@pytest.mark.parametrize("folder", [*FOLDERS, "pages"])
def test_prose_is_plain(folder):
    paths = PAGES if folder == "pages" else (ROOT / folder).rglob("*.py")
    found = [
        f"{path.relative_to(ROOT)}: {match.group().strip()}"
        for path in paths
        for text in prose_of(path)
        for match in BANNED.finditer(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "What stands between the network and the service.",
        "The result hangs on the seed.",
        "Who asks is told.",
    ],
)
def test_riddles_are_found(text):
    assert BANNED.search(text)
