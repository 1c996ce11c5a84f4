"""Tests of `documents.docx_document`, which python-docx and lxml read."""

import io
import re
import tracemalloc
import zipfile
from unittest import mock

import docx
import pytest
from hypothesis import given, settings, strategies as st
from lxml import etree

from documents import docx_package
from documents.docx_document import DocxDocument
from documents.markup.translate_markup import translate_markup
from tests.helpers import word_documents
from tests.helpers.known_alignment_translators import identity, letters, word_swap
from tests.helpers.word_documents import (
    MAIN,
    W,
    elements,
    is_translated,
    paragraphs,
    run,
    wrap,
)

DOCUMENT_TYPE = b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
REFUSAL = "a .docx file must be a zip archive with word/document.xml, not enc"


@pytest.fixture(scope="module")
def content():
    return word_documents.make_document()


def translate(content, translator):
    document = DocxDocument(content)
    return document.fill(
        translate_markup(document.text, document.format, translator).content
    )


def translate_paragraph(content, translator):
    file = translate(wrap(content), translator)
    (paragraph,) = docx.Document(io.BytesIO(file)).paragraphs
    return paragraph


def test_identity_keeps_all(content):
    found = translate(content, identity())

    assert list(paragraphs(found)) == list(paragraphs(content))
    assert elements(found) == elements(content)
    before, after = map(word_documents.unpack, (content, found))
    assert list(before) == list(after)
    copied = {name for name in before if not is_translated(name)}
    assert {n: before[n] for n in copied} == {n: after[n] for n in copied}


def test_python_docx_reads_the_translation(content):
    found = docx.Document(io.BytesIO(translate(content, word_swap())))

    first, second, third, *_ = found.paragraphs
    assert [(r.text, r.bold) for r in first.runs] == [
        ("black", True),
        (" The dog & cat sleep.", None),
    ]
    assert [r.text for r in second.runs] == ["cats White."]
    (link,) = third.hyperlinks
    assert link.address == "https://example.org/"
    assert link.text == "page our"
    assert [r.bold for r in link.runs] == [True, None]
    assert str(link.runs[1].font.color.rgb) == "0000FF"
    assert found.paragraphs[-2].style.name == "Heading 1"
    assert found.paragraphs[-2].text == "heading A words of"
    assert len(found.inline_shapes) == 1
    (row,) = found.tables[0].rows
    assert row.cells[0].text == "cell A words of"
    assert row.cells[1].tables[0].cell(0, 0).text == "inner An cell"
    (section,) = found.sections
    assert section.header.paragraphs[0].text == "header The all of pages"
    assert section.footer.paragraphs[0].text == "footer The all of pages"


def test_the_field_of_a_link_is_translated_and_others_stay():
    content = run("see ") + word_documents.field(
        " HYPERLINK &quot;#a&quot; ", run("this page", "<w:u/>")
    )
    other = word_documents.field(" PAGE ", run("of three", "<w:b/>"))

    text = DocxDocument(wrap(content + other)).text
    assert ">this page</a>" in text
    assert ">of three</code>" in text
    link = translate_paragraph(content, word_swap())
    page = translate_paragraph(run("two words ") + other, word_swap())

    assert link.text == "this see page"
    assert page.text == "words two of three"
    for paragraph in (link, page):
        marks = [
            node.tag.removeprefix(W)
            for node in paragraph._p.iter(f"{W}fldChar", f"{W}instrText", f"{W}t")
        ]
        assert [mark for mark in marks if mark != "t"] == [
            *("fldChar", "instrText", "fldChar", "fldChar")
        ]


def test_the_most_frequent_format_is_that_of_text_without_a_tag():
    # What a run holds beside text keeps its format.
    content = "<w:r><w:rPr><w:i/></w:rPr><w:t>two</w:t><w:tab/></w:r>" + run(" a ")

    paragraph = translate_paragraph(content + run("long text", "<w:i/>"), word_swap())

    assert [(r.text, r.italic) for r in paragraph.runs] == [
        *(("two", True), ("\t", True)),
        *((" long ", True), ("a", None), (" text", True)),
    ]


def test_the_ends_of_a_bookmark_stay_in_order():
    content = f'<w:bookmarkStart w:id="1" w:name="a"/>{run("two ")}'
    content += f'<w:bookmarkEnd w:id="1"/>{run("words")}'

    document = DocxDocument(wrap(content))
    text = document.text
    start, end = re.findall("<img[^>]*>", text)
    swapped = text.replace(start, "?").replace(end, start).replace("?", end)

    file = document.fill(swapped)

    (paragraph,) = docx.Document(io.BytesIO(file)).paragraphs
    names = [node.tag.removeprefix(W) for node in paragraph._p]
    assert names == ["bookmarkStart", "r", "bookmarkEnd", "r"]


def test_notes_and_text_boxes_are_translated(content):
    parts = word_documents.unpack(content)
    box = f"<w:drawing><w:p>{run('in a box')}</w:p></w:drawing>"
    body = f"<w:p><w:r>{box}</w:r>{run('around it')}</w:p>"
    notes = f'<w:footnotes xmlns:w="{W[1:-1]}"><w:footnote><w:p>'
    notes += f"{run('of notes')}</w:p></w:footnote></w:footnotes>"
    parts |= {MAIN: word_documents.root(body), "word/footnotes.xml": notes.encode()}

    found = word_documents.unpack(translate(word_documents.pack(parts), word_swap()))

    for name, text in ((MAIN, "a in boxit around"), ("word/footnotes.xml", "notes of")):
        assert "".join(etree.fromstring(found[name]).itertext(f"{W}t")) == text


def test_the_strict_variant_of_the_standard_and_numbered_parts_are_read():
    parts = word_documents.unpack(wrap(run("two words")))
    strict = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
    parts["word/document2.xml"] = parts.pop(MAIN).replace(W[1:-1].encode(), strict)

    found = word_documents.unpack(translate(word_documents.pack(parts), word_swap()))

    assert b">words two</" in found["word/document2.xml"]


def test_characters_that_xml_lacks_are_dropped():
    document = DocxDocument(wrap(run("two words")))

    found = document.fill(document.text.replace("two", "t\0wo\x0b\ud800"))

    assert "two words" in list(paragraphs(found))


FORMATS = st.sampled_from(["", "<w:b/>", "<w:i/>", '<w:lang w:val="es"/>'])
CHARACTERS = "ab .,é&<\N{NO-BREAK SPACE}\u200b\u200f\u00ad\u2060\u0301\ufe0f😆"
TEXTS = st.text(st.sampled_from(CHARACTERS), max_size=9)
OTHERS = st.sampled_from(
    [
        "<w:r><w:tab/></w:r>",
        "<w:r><w:drawing/></w:r>",
        '<w:bookmarkStart w:id="1"/>',
        '<w:bookmarkEnd w:id="1"/>',
        word_documents.field("PAGE", run("a")),
        word_documents.field("HYPERLINK", run("b", "<w:b/>") + run(" c")),
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
        f"<w:hyperlink>{run('d e')}</w:hyperlink>",
        f"<w:ins>{run('f')}</w:ins><w:del><w:r><w:delText>g</w:delText></w:r></w:del>",
        f"<w:sdt><w:sdtPr/><w:sdtContent>{run('h i')}</w:sdtContent></w:sdt>",
        f"<w:fldSimple>{run('j')}</w:fldSimple><w:r><w:noBreakHyphen/></w:r>",
        "<w:r><w:br/><w:t>k</w:t><w:footnoteReference/></w:r><w:proofErr/>",
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
    ]
)


@st.composite
def make_runs(draw):
    text = draw(TEXTS).replace("&", "&amp;").replace("<", "&lt;")
    return run(text, draw(FORMATS))


@settings(max_examples=40, deadline=None)
@given(st.lists(make_runs() | OTHERS, min_size=1, max_size=8).map("".join))
def test_no_paragraph_loses_anything(content):
    file = wrap(content)
    before = list(paragraphs(file))

    same = translate(file, identity())
    swapped = translate(file, word_swap())

    assert list(paragraphs(same)) == before
    found = list(paragraphs(swapped))
    assert list(map(letters, found)) == list(map(letters, before))
    assert elements(same) == elements(swapped) == elements(file)


def changed(**changes):
    """Returns a document with other parts; `None` leaves one out."""
    parts = word_documents.unpack(wrap(run("a")))
    parts |= {name.replace("_", "/") + ".xml": c for name, c in changes.items()}
    return word_documents.pack({n: c for n, c in parts.items() if c is not None})


FLAGS = rb"(PK\x01\x02.{4}|PK\x03\x04.{2})\x00"
SMALL = wrap(run("a"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK", "none, or a damaged one"),
        (docx_package.OLE + b"a", "another kind of file: an encr"),
        (changed(word_document=None), "one without word/document"),
        (changed(word_document=b"<a"), "one whose XML is not well"),
        (changed(word_document=b"<a/>"), "one whose word/document.xml is another"),
        (changed(word_header1=DOCUMENT_TYPE), "one whose XML has a document type"),
        (re.sub(FLAGS, b"\\1\x01", SMALL, flags=re.S), "one whose parts are encry"),
        (word_documents.pack({MAIN: b"a"}, zipfile.ZIP_LZMA), "one whose parts are en"),
        (SMALL[:60] + b"\xff" * 20 + SMALL[80:], "one with a damaged part"),
    ],
    ids=lambda value: value[10:40] if isinstance(value, str) else "",
)
def test_other_files_are_refused(content, message):
    with pytest.raises(ValueError, match=REFUSAL) as refused:
        DocxDocument(content)

    assert f"Received: {message}" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "limit", "message"),
    [
        ("MAX_GROWTH", 100, r"file of \d+ bytes must unpack to at most \d+ bytes. R"),
        ("MAX_PARTS", 3, r"must have at most 3 parts. Received: \d+$"),
    ],
)
def test_what_unpacks_to_too_much_is_refused(monkeypatch, name, limit, message):
    monkeypatch.setattr(docx_package, name, limit)

    with pytest.raises(ValueError, match=message):
        DocxDocument(changed(word_media=bytes(20_000)))


def test_tags_are_counted_before_trees_are_built():
    DocxDocument(wrap(run("a") + 20_000 * "<w:a/>"), 20_300)
    with (
        mock.patch.object(docx_package, "parse_xml", side_effect=AssertionError),
        pytest.raises(ValueError, match="must have at most 20300 tags. Rec"),
    ):
        DocxDocument(wrap(run("a") + 21_000 * "<w:a/>"), 20_300)


BOX = "<w:r><w:t>a</w:t><w:drawing><w:p>", "</w:p></w:drawing></w:r>"


@pytest.mark.parametrize(
    "content",
    [
        # Text boxes in text boxes would take minutes.
        60 * BOX[0] + 500 * "<w:a/>" + 60 * BOX[1],
        # Each text gets a copy of the format of its run.
        f"<w:r><w:rPr>{100 * '<w:b/>'}</w:rPr>{500 * '<w:t>a</w:t>'}</w:r>",
    ],
    ids=["text boxes", "formats"],
)
def test_elements_are_counted_for_each_move_and_copy(content):
    with pytest.raises(ValueError, match="at most 10000 elements to move or copy"):
        DocxDocument(wrap(content), 10_000)


def test_ranges_in_text_boxes_are_ordered_once():
    mark = '<w:bookmark{} w:id="1"/>'
    box = f"<w:r><w:drawing><w:p>{mark.format('End')}{run('a')}</w:p></w:drawing></w:r>"
    content = f"{box}{run('two words')}{mark.format('Start')}"

    file = translate(wrap(content), identity())

    assert list(paragraphs(file)) == list(paragraphs(wrap(content)))
    assert elements(file) == elements(wrap(content))


def test_tags_in_other_encodings_are_not_overlooked():
    body = f"<w:p>{run('a')}</w:p>" + 1000 * "<w:p/>"
    text = word_documents.root(body).decode()
    ebcdic, utf16 = (
        f'<?xml version="1.0" encoding="{name}"?>{text}'.encode(name)
        for name in ("cp037", "utf-16")
    )

    with pytest.raises(ValueError, match="one whose XML is not well-formed"):
        DocxDocument(changed(word_document=ebcdic), 500)
    with pytest.raises(ValueError, match="must have at most 500 tags"):
        DocxDocument(changed(word_document=utf16), 500)
    assert DocxDocument(changed(word_document=utf16)).plain.startswith("a\n")


@pytest.mark.parametrize(
    "content", [wrap(run("a")), wrap(run("a" * 99_999)), b"", b"PK\x01\x02"]
)
def test_the_unpacked_size_is_known_without_unpacking(content):
    size = docx_package.declared_size(content)

    parts = word_documents.unpack(content) if len(content) > 99 else {}
    assert size == sum(len(parts[name]) for name in parts if is_translated(name))


def test_a_part_that_lies_about_its_size_takes_no_memory():
    size = 2**26
    content = word_documents.pack({MAIN: bytes(size)})
    content = content.replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little"))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="one with a damaged part"):
            DocxDocument(content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < size / 16
