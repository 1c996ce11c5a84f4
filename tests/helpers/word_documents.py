"""Makes Word documents with most of what paragraphs hold."""

import base64
import collections
import io
import re
import zipfile

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from lxml import etree

# A PNG of one pixel.
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAA"
    "AABJRU5ErkJggg=="
)
MAIN = "word/document.xml"
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def field(code, result):
    """Returns the runs of a complex field."""
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    return (
        mark.format("begin")
        + f"<w:r><w:instrText>{code}</w:instrText></w:r>"
        + mark.format("separate")
        + result
        + mark.format("end")
    )


def run(text, properties=""):
    properties = properties and f"<w:rPr>{properties}</w:rPr>"
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


# The content of paragraphs. `rId` stands for the hyperlink's relationship.
PARAGRAPHS = (
    run("The ") + run("black", "<w:b/>") + run(" cat &amp; dog sleep."),
    # Word splits runs where nothing changes.
    run("Wh") + run("ite", '<w:lang w:val="en-US"/>') + run(" cats."),
    run("See here ")
    + '<w:hyperlink r:id="rId">'
    + run("our ", '<w:color w:val="0000FF"/>')
    + run("page", '<w:color w:val="0000FF"/><w:b/>')
    + "</w:hyperlink>"
    + run(" for more."),
    run("Read ")
    + field(" HYPERLINK &quot;#a&quot; ", run("this page", "<w:u/>"))
    + run(" or page ")
    + field(" PAGE ", run("3"))
    + run(" of the book."),
    '<w:bookmarkStart w:id="1" w:name="a"/>'
    + run("Two words")
    + '<w:bookmarkEnd w:id="1"/>'
    + '<w:proofErr w:type="spellStart"/>'
    + run(" of text."),
)


def make_document():
    """Returns the bytes of a document with `PARAGRAPHS`, tables and more."""
    document = docx.Document()
    link = document.part.relate_to(
        "https://example.org/", RELATIONSHIP_TYPE.HYPERLINK, is_external=True
    )
    for content in PARAGRAPHS:
        content = content.replace("rId", link)
        paragraph = parse_xml(
            f"<w:p {nsdecls('w', 'r')}><w:pPr><w:jc/></w:pPr>{content}</w:p>"
        )
        document.element.body.insert_element_before(paragraph, "w:sectPr")
    document.add_heading("A heading of words", level=1)
    document.add_paragraph("A picture ").add_run().add_picture(io.BytesIO(PICTURE))
    table = document.add_table(1, 2)
    table.cell(0, 0).text = "A cell of words"
    table.cell(0, 1).text = "42"
    table.cell(0, 1).add_table(1, 1).cell(0, 0).text = "An inner cell"
    section = document.sections[0]
    section.header.paragraphs[0].text = "The header of all pages"
    section.footer.paragraphs[0].text = "The footer of all pages"
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def unpack(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(parts, compression=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def is_translated(name):
    """Returns whether a part has text of the document."""
    return re.fullmatch(r"word/(document|header\d|footer\d|footnotes).xml", name)


def paragraphs(content):
    """Yields the text of each paragraph in the document."""
    for name, part in unpack(content).items():
        if is_translated(name):
            for paragraph in etree.fromstring(part).iter(f"{W}p"):
                yield "".join(paragraph.itertext(f"{W}t"))


def elements(content):
    """Counts the elements of a document but runs, texts and their formats.

    Marks of misspelt words are not counted.
    """
    counts = collections.Counter()
    for name, part in unpack(content).items():
        if is_translated(name):
            for node in etree.fromstring(part).iter():
                parent = node.getparent()
                if node.tag not in (f"{W}r", f"{W}t", f"{W}proofErr") and (
                    parent is None or f"{W}rPr" not in (node.tag, parent.tag)
                ):
                    counts[node.tag, *sorted(node.items())] += 1
    return counts


def wrap(content):
    """Returns a document of one paragraph with this content."""
    return pack(unpack(make_document()) | {MAIN: root(f"<w:p>{content}</w:p>")})


def root(body):
    start = f'<w:document xmlns:w="{W[1:-1]}"><w:body>'
    return f"{start}{body}</w:body></w:document>".encode()
