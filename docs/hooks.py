"""MkDocs hooks that insert source code and other files into the pages.

`{{ source layers.attention.scaled_dot_product_attention }}` becomes the lines of
that function or method of `keras_transformer`, without its docstring,
`{{ include README.md }}` the text of a file,
`{{ options train.options.Options }}` tables of a command's options, and
`{{ measured NAME }}` what `python -m benchmarks.all` measured. The headings of
a file go one level down where the page has a heading before it.
Formulas between `$$`, in the notebook also between `$`, become MathML, which
browsers draw without a script.
"""

import argparse
import ast
import dataclasses
import html
import importlib
import pathlib
import posixpath
import re
import textwrap

from benchmarks.all import describe_results

ROOT = pathlib.Path(__file__).parent.parent
# Files beside the guide that are pages of it.
PAGES = {
    "README.md": "docs/index.md",
    "CONTRIBUTING.md": "docs/reference/contributing.md",
    "CHANGELOG.md": "docs/reference/changelog.md",
    "SECURITY.md": "docs/reference/security.md",
    "benchmarks/README.md": "docs/explanation/measured.md",
}


def find_source(name: str) -> str:
    """Returns the lines of a function, such as `masks.padding_mask`."""
    file, path = find_defining_file(name)
    text = file.read_text("utf-8")
    node = ast.parse(text)
    for part in path:
        node = next(n for n in node.body if getattr(n, "name", None) == part)
    start = node.lineno
    lines = text.splitlines()[start - 1 : node.end_lineno]
    if ast.get_docstring(node):
        docstring = node.body[0]
        del lines[docstring.lineno - start : docstring.end_lineno + 1 - start]
    return textwrap.dedent("\n".join(lines))


def find_defining_file(name: str) -> tuple[pathlib.Path, list[str]]:
    """Returns the file of a function, and the names that lead to it there."""
    path, names = ROOT / "keras_transformer", name.split(".")
    while path.is_dir():
        path /= names.pop(0)
        if path.with_suffix(".py").exists():
            path = path.with_suffix(".py")
    return path, names


def describe_options(name: str) -> str:
    """Returns the options of a dataclass as tables, one a group."""
    module, _, cls = name.rpartition(".")
    tables = []
    add_tables(getattr(importlib.import_module(module), cls), "", tables)
    return "\n\n".join(tables)


def add_tables(cls: type, title: str, tables: list[str]) -> None:
    """Appends the table of a dataclass's own options, then those of parts."""
    from command_line.options import PART, flag

    rows, parts = [], []
    for field in dataclasses.fields(cls):
        if PART in field.metadata:
            parts.append((field.type, (field.metadata[PART] or [""])[0]))
            continue
        given = field.metadata["arguments"]
        if given["help"] == argparse.SUPPRESS:
            continue
        help_ = html.escape(given["help"] % {"default": field.default})
        help_ = re.sub(r"([|\[\]])", r"\\\1", help_)  # Inline markup.
        if "choices" in given and "metavar" not in given:
            help_ += f": {', '.join(f'`{c}`' for c in given['choices'])}"
        if given.get("required"):
            help_ += " (required)"
        rows.append(f"| `{flag(field.name)}` | {help_} |")
    if rows:
        head = f"### {title}\n\n" if title else ""
        rows = "\n".join(["| option | meaning |", "|---|---|", *rows])
        tables.append(head + rows)
    for part, name in parts:
        add_tables(part, name, tables)


def draw_formulas(text: str) -> str:
    """Replaces the lines `$$formula$$` of Markdown, or of its HTML, by MathML."""

    def draw(match):
        formula = to_mathml(match[1], display="block")
        return f'<p class="formula">{formula}</p>'

    return re.sub(r"^(?:<p>)?\$\$(.+)\$\$(?:</p>)?$", draw, text, flags=re.M)


def draw_formulas_in_cells(content: str) -> str:
    """Replaces the formulas in the Markdown cells of a notebook, `$formula$` too."""
    parts = re.split('(?=<div class="jp-Cell |<script)', content)
    for i, part in enumerate(parts):
        if part.startswith('<div class="jp-Cell jp-MarkdownCell'):
            parts[i] = re.sub(
                r"\$([^$\n]+)\$", lambda match: to_mathml(match[1]), draw_formulas(part)
            )
    return "".join(parts)


def to_mathml(formula: str, **options) -> str:
    from latex2mathml.converter import convert

    return convert(html.unescape(formula), **options)


def lower(markdown: str) -> str:
    """Moves headings one level down, but not what looks like one in code."""
    parts = re.split(r"(^```.*?^```)", markdown, flags=re.M | re.S)
    parts[::2] = (re.sub("^#", "##", part, flags=re.M) for part in parts[::2])
    return "".join(parts)


def move_links(markdown: str, file: str, page: str) -> str:
    """Makes the links of a file lead to pages, as seen from the page it is on."""

    def replace(match):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), match[1]))
        target = PAGES.get(target, target)
        return f"]({posixpath.relpath(target, posixpath.dirname(page))}"

    return re.sub(r"\]\(([\w./]+\.(?:ipynb|md|svg))\b", replace, markdown)


def expand(markdown: str, page: str) -> str:
    """Replaces the directives, and links to files that are pages here."""

    def replace(match):
        kind, name = match.groups()
        if kind == "options":
            return describe_options(name)
        if kind == "measured":
            return describe_results(name)
        if kind == "include":
            text = move_links((ROOT / name).read_text("utf-8"), name, page)
            return lower(text) if match.start() else text
        path = find_defining_file(name)[0].relative_to(ROOT)
        return f'```python title="{path}"\n{find_source(name)}\n```'

    return re.sub(
        r"^\{\{ (source|include|options|measured) (.+) \}\}$",
        replace,
        move_links(markdown, page, page),
        flags=re.M,
    )


def on_page_markdown(markdown, page, **_):
    return draw_formulas(expand(markdown, f"docs/{page.file.src_uri}"))


def on_page_content(content, page, **_):
    """Draws a notebook's formulas; refuses a page that lacks a name it asks for.

    `--strict` does not report such a name.
    """
    asked = []
    for block in re.findall(r"^::: (.+(?:\n .*)*)", page.markdown, flags=re.M):
        name, *options = block.split("\n")
        members = re.search(r"members: \[(.*)\]", "".join(options))
        asked.append(name)
        if members:
            asked += [f"{name}.{member}" for member in members[1].split(", ")]
    missing = [name for name in asked if f'id="{name}"' not in content]
    if missing:
        raise ValueError(f"{page.file.src_uri} lacks {', '.join(missing)}")
    is_notebook = page.file.src_uri.endswith(".ipynb")
    return draw_formulas_in_cells(content) if is_notebook else content
