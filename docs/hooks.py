"""Fills the pages with what the code says, when mkdocs builds them.

`{{ source attention.scaled_dot_product_attention }}` becomes the lines of that
function or method of `keras_transformer`, without its docstring,
`{{ include benchmarks/README.md }}` the text of a file, one level down, and
`{{ section Serve }}` that section of the README.
"""

import ast
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).parent.parent
PACKAGE = "keras_transformer"
PAGES = {
    "docs/annotated.ipynb": "annotated.ipynb",
    "docs/tables.md": "tables.md",
    "docs/many_machines.md": "many_machines.md",
    "benchmarks/README.md": "measured.md",
    "../benchmarks/README.md": "measured.md",
    "#results": "measured.md#results",
    "../docs/decoding.png": "decoding.png",
}


def find_source(name: str) -> str:
    """Returns the lines of a function, such as `attention.write`."""
    module, *path = name.split(".")
    text = (ROOT / PACKAGE / f"{module}.py").read_text("utf-8")
    node = ast.parse(text)
    for part in path:
        node = next(n for n in node.body if getattr(n, "name", None) == part)
    lines = text.splitlines()
    body = node.body
    if ast.get_docstring(node):
        lines[body[0].lineno - 1 : body[0].end_lineno] = [None] * (
            body[0].end_lineno - body[0].lineno + 1
        )
    chosen = lines[node.lineno - 1 : node.end_lineno]
    code = "\n".join(line for line in chosen if line is not None)
    return textwrap.dedent(code)


def find_section(heading: str) -> str:
    """Returns a section of the README, its heading included."""
    text = (ROOT / "README.md").read_text("utf-8")
    parts = re.split(r"^(?=## )", text, flags=re.M)
    (section,) = (p for p in parts if p.startswith(f"## {heading}\n"))
    return section


def lower(markdown: str) -> str:
    """Moves headings one level down, but not what looks like one in code."""
    parts = re.split(r"(^```.*?^```)", markdown, flags=re.M | re.S)
    parts[::2] = (re.sub("^#", "##", part, flags=re.M) for part in parts[::2])
    return "".join(parts)


def expand(markdown: str) -> str:
    """Replaces the directives, and links to files that are pages here."""

    def replace(match):
        kind, name = match.groups()
        if kind == "section":
            return find_section(name)
        if kind == "include":
            return lower((ROOT / name).read_text("utf-8"))
        path = f"{PACKAGE}/{name.split('.')[0]}.py"
        return f'```python title="{path}"\n{find_source(name)}\n```'

    markdown = re.sub(
        r"^\{\{ (source|include|section) (.+) \}\}$",
        replace,
        markdown,
        flags=re.M,
    )
    for path, page in PAGES.items():
        markdown = markdown.replace(f"]({path}", f"]({page}")
    return markdown


def on_page_markdown(markdown, **_):
    return expand(markdown)
