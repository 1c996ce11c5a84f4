"""The guide: its code runs, and what it takes from the package is there."""

import importlib.util
import json
import pathlib
import re
import sys
import types

import pytest

import keras_transformer
from documents.formats import FORMAT_OF_SUFFIX

DOCS = pathlib.Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["how_to/documents", "reference/http_api"])
def test_the_guide_names_every_format(page):
    text = (DOCS / f"{page}.md").read_text("utf-8")

    assert [suffix for suffix in FORMAT_OF_SUFFIX if f"`{suffix}`" not in text] == []


def test_code_of_the_paper_runs():
    text = (DOCS / "explanation/paper.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    names = {}
    for block in blocks:
        exec(block, names)

    assert len(blocks) >= 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_notebook_runs(monkeypatch, capsys):
    monkeypatch.chdir(DOCS / "tutorials")  # As Jupyter does.
    notebook = json.loads((DOCS / "tutorials/annotated.ipynb").read_text("utf-8"))
    cells = [
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    assert cells[0] == "UPDATES = 1000\nTEST_SENTENCES = 200"
    names = {"UPDATES": 10, "TEST_SENTENCES": 8}

    for cell in cells[1:]:
        exec(cell, names)

    assert "BLEU on 8 sentences: " in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_filled_in(page, hooks):
    """Its links are checked by `mkdocs build --strict`, which `make docs` runs."""
    found = hooks.expand(
        page.read_text("utf-8"), page.relative_to(DOCS.parent).as_posix()
    )

    for left in ("{{ ", "SUPPRESS", "%(default"):
        assert left not in found
    # A formula is drawn where it is one line.
    assert [line for line in found.split("\n") if line.count("$$") == 1] == []


def test_a_page_without_a_name_that_it_asks_for_is_refused(hooks):
    page = types.SimpleNamespace(
        markdown="::: a.B\n    options:\n      members: [c, d]\n",
        file=types.SimpleNamespace(src_uri="api.md"),
    )
    hooks.on_page_content('<h2 id="a.B"><h3 id="a.B.c"><h3 id="a.B.d">', page)

    with pytest.raises(ValueError, match=r"api.md lacks a.B.d"):
        hooks.on_page_content('<h2 id="a.B"><h3 id="a.B.c">', page)


def test_formulas_of_the_notebook_are_drawn(hooks, monkeypatch):
    def convert(formula, display="inline"):
        return f"[{display} {formula}]"

    # It is in the extra `docs` alone.
    converter = types.SimpleNamespace(convert=convert)
    monkeypatch.setitem(sys.modules, "latex2mathml", types.ModuleType("latex2mathml"))
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", converter)
    page = types.SimpleNamespace(
        markdown="", file=types.SimpleNamespace(src_uri="annotated.ipynb")
    )
    cell = '<div class="jp-Cell jp-{}Cell">\n{}\n</div>\n'
    code = cell.format("Code", "cd $D; ls $D")
    script = "<script>a = ['$','$']</script>"
    text = "<p>$$a &lt; b$$</p>\n<p>With $\\sqrt{d}$ and $c$.</p>\nPATH=$PWD"

    drawn = hooks.on_page_content(code + cell.format("Markdown", text) + script, page)

    text = '<p class="formula">[block a < b]</p>\n'
    text += "<p>With [inline \\sqrt{d}] and [inline c].</p>\nPATH=$PWD"
    assert drawn == code + cell.format("Markdown", text) + script


def test_boxes_of_figure_1_lead_to_sections():
    headings = re.findall(
        r"^## (.+)$", (DOCS / "explanation/paper.md").read_text("utf-8"), re.M
    )
    links = re.findall(
        r'href="#([^"]+)"', (DOCS / "assets/figure1.svg").read_text("utf-8")
    )

    slugs = [re.sub(r"[^\w -]", "", heading).lower() for heading in headings]
    assert len(links) >= 15
    assert {slug.replace(" ", "-") for slug in slugs}.issuperset(links)


def test_every_command_has_its_options():
    page = (DOCS / "reference/options.md").read_text()
    code = [
        path.read_text()
        for folder in ("train", "export", "convert", "paper", "translate")
        for path in (DOCS.parent / folder).rglob("*.py")
    ]
    pattern = r'(?:prog="python -m |parse_command\(")([^"]+)"'
    commands = re.findall(pattern, "".join(code))
    assert len(commands) > 9

    assert [n for n in commands if f"## python -m {n}" not in page] == []


def test_the_api_has_every_public_name():
    text = (DOCS / "reference/api.md").read_text("utf-8")
    documented = re.findall(r"^::: keras_transformer\.[\w.]+\.(\w+)$", text, re.M)

    assert sorted(documented) == sorted({*keras_transformer.__all__} - {"PRESETS"})
    assert "\n`PRESETS` is a dict " in text
