"""Translates plain text, sentence by sentence or part by part."""

import codecs
import collections
import itertools
import re
from collections.abc import Callable, Generator, Iterable, Iterator

from command_line.errors import InvalidDocumentError
from documents.markup.markup_tokens import copy_with_edits
from documents.markup.tagged_sentences import find_middle_blank
from documents.markup.translate_markup import (
    Steps,
    TranslatedDocument,
    TranslationRequest,
)
from text_processing.placeholders import FENCE

# A text of so few characters is not split: it is hardly too long for a model,
# whose translation was cut since it did not end.
MAX_WHOLE = 100
PART_BYTES = 2**14  # Bytes of a text that are translated at once.
# A longer line is cut: the signature takes twice as many.
LINE_BYTES = 2**19
BEGIN_OF_FENCE = re.compile(FENCE.encode())
END_OF_FENCE = re.compile(rb"%b[ \t]*\r?\n?\Z" % FENCE.encode())


def split_at_line_ends(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Splits a text at line ends into parts of about `PART_BYTES` bytes.

    Each part can be translated alone, since no sentence spans two lines. Yields
    the text of a part, and whether it is of fenced code, which stays.
    """
    held, size, in_fence = [], 0, False
    for line in lines:
        begins = not in_fence and BEGIN_OF_FENCE.match(line)
        if held and (begins or size >= PART_BYTES):
            yield b"".join(held), in_fence
            held, size = [], 0
        if begins:
            in_fence = True
        elif in_fence and END_OF_FENCE.match(line):
            yield b"".join([*held, line]), True
            held, size, in_fence = [], 0, False
            continue
        *parts, line = [line] if in_fence else split_long_line(line)
        for part in parts:
            yield b"".join([*held, part]), False
            held, size = [], 0
        held.append(line)
        size += len(line)
    if size:
        yield b"".join(held), in_fence


def split_long_line(line: bytes) -> Iterator[bytes]:
    """Splits a line after carriage returns or blanks, if it is too long."""
    while len(line) > LINE_BYTES:
        ends = (line.rfind(mark, 0, LINE_BYTES) for mark in (b"\r", b" "))
        whole = LINE_BYTES
        # Not within a character of UTF-8, which has at most four bytes.
        while whole > LINE_BYTES - 3 and line[whole] & 0xC0 == 0x80:
            whole -= 1
        place = next((end + 1 for end in ends if end > 0), whole)
        yield line[:place]
        line = line[place:]
    yield line


def translate_text(
    translate: Callable, lines: Iterable[bytes], counts: dict[str, int]
) -> Iterator[bytes]:
    """Yields the translation of a text in UTF-8, part by part.

    Args:
        translate: Function from a list of texts to the outputs of the
            signature `translate_document`.
        lines: The text, with its line ends; a byte order mark stays.
        counts: Counter, as in `translate_lines`.

    Raises:
        InvalidDocumentError: If the text is not UTF-8.
    """
    lines = iter(lines)
    first = next(lines, b"")
    text = first.removeprefix(codecs.BOM_UTF8)
    yield first[: len(first) - len(text)]
    for part, is_code in split_at_line_ends(itertools.chain([text], lines)):
        try:
            part.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidDocumentError(
                f"text must be UTF-8. Received: byte 0x{part[error.start]:02x}"
            ) from None
        if is_code:
            yield part
            continue
        outputs = translate([part])
        counts["lines"] += 1
        counts["truncated"] += int(outputs.get("truncated", [False])[0])
        yield outputs["translation"][0]


def text_steps(text: str, split: Callable) -> Steps:
    """Translates plain text as `markup_steps` does documents with tags."""
    (spans,) = split([text])
    found = yield from translate_whole([text[start:end] for start, end in spans])
    edits = [(*span, new) for span, (new, _) in zip(spans, found, strict=True)]
    counts = collections.Counter(
        sentences=len(found), truncated=sum(was_cut for _, was_cut in found)
    )
    return TranslatedDocument(copy_with_edits(text, edits), counts)


def translate_whole(
    texts: list[str],
) -> Generator[TranslationRequest, list, list[tuple[str, bool]]]:
    """Translates sentences; one that the model cuts is split in two.

    Returns the translation of each, and whether it was cut all the same.
    """
    if not texts:
        return []
    found = list((yield TranslationRequest(texts)))
    halves = {
        i: split_in_two(texts[i])
        for i, (_, was_cut) in enumerate(found)
        if was_cut and len(texts[i]) > MAX_WHOLE
    }
    parts = [part for first, _, last in halves.values() for part in (first, last)]
    again = iter((yield from translate_whole(parts)))
    for i, (_, gap, _) in halves.items():
        (first, was_cut), (last, was_cut_too) = next(again), next(again)
        found[i] = f"{first}{gap}{last}", was_cut or was_cut_too
    return found


def split_in_two(text: str) -> tuple[str, str, str]:
    """Returns the halves of a text that is too long, and what is between them."""
    blank = find_middle_blank(text)
    if blank is None:
        middle = len(text) // 2
        return text[:middle], "", text[middle:]
    return text[:blank], " ", text[blank + 1 :]
