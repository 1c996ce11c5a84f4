"""Documents that others wrote lose nothing: READMEs, manuals and stylesheets.

They are those of Python and of packages that the tests need. The trees before
and after are compared by html5lib, lxml and markdown-it-py.
"""

import collections
import importlib.metadata
import importlib.util
import pathlib
import pydoc

import html5lib
import lxml.etree
import markdown_it
import pytest
from mdit_py_plugins.footnote import footnote_plugin

from documents.markup.html_scanner import BLOCKS, TRANSLATED
from documents.markup.translate_markup import translate_markup
from tests.helpers.known_alignment_translators import identity, letters, word_swap

READMES = [
    *("attrs", "fastapi", "jax", "keras", "markdown-it-py", "matplotlib", "ml_dtypes"),
    *("numpy", "optree", "pillow", "requests", "tqdm", "uvicorn"),
]
MODULES = ["argparse", "csv", "html.parser", "json", "textwrap"]
STYLESHEETS = ["iso_dsdl_include", "iso_schematron_skeleton_for_xslt1"]


def read_readme(package):
    metadata = importlib.metadata.metadata(package)
    return metadata.get_payload() or metadata["Description"]


def read_manual(module):
    text = pydoc.html.document(importlib.import_module(module))
    return pydoc.html.page(module, text)


def read_stylesheet(name):
    package = pathlib.Path(importlib.util.find_spec("lxml").origin).parent
    folder = package / "isoschematron/resources/xsl/iso-schematron-xslt1"
    return (folder / f"{name}.xsl").read_text(encoding="utf-8")


DOCUMENTS = [
    *(("markdown", read_readme, name) for name in READMES),
    *(("html", read_manual, name) for name in MODULES),
    *(("xml", read_stylesheet, name) for name in STYLESHEETS),
]


def sort_letters(text):
    return "".join(letters(text.lower()))


def read_tree(source, format):
    """Counts the elements, and returns the sorted letters of each block."""
    if format == "xml":
        root = lxml.etree.fromstring(source.encode())
        elements = (
            (str(element.tag), *sorted(element.items())) for element in root.iter()
        )
        return collections.Counter(elements), sort_letters("".join(root.itertext()))
    if format == "markdown":
        parser = markdown_it.MarkdownIt("commonmark").use(footnote_plugin)
        source = parser.enable(["table", "strikethrough"]).render(source)
    root = html5lib.parse(source, treebuilder="etree", namespaceHTMLElements=False)
    elements, blocks = collections.Counter(), []

    def visit(element, block):
        if element.tag in BLOCKS:
            block = [element.tag]
            blocks.append(block)
        attributes = (
            (name, sort_letters(value) if name in TRANSLATED else value)
            for name, value in sorted(element.items())
        )
        elements[str(element.tag), *attributes] += 1
        block.append(element.text or "")
        for child in element:
            visit(child, block)
            block.append(child.tail or "")

    visit(root, [])
    return elements, [(name, sort_letters("".join(parts))) for name, *parts in blocks]


@pytest.mark.parametrize(("format", "read", "name"), DOCUMENTS)
def test_real_documents_lose_nothing(format, read, name):
    source = read(name)

    assert translate_markup(source, format, identity()).content == source
    found = translate_markup(source, format, word_swap())
    assert found.content != source
    assert found.counts["kept"] <= 1 + found.counts["sentences"] * 0.02
    assert read_tree(found.content, format) == read_tree(source, format)
