"""Translates plain-text documents for `translate --documents`."""

import pathlib
import re
from collections.abc import Callable, Iterable, Iterator

from command_line.errors import InvalidDocumentError, UserError

PART_BYTES = 2**14  # Bytes of a text that are translated at once.
# A longer line is cut: the signature takes twice as many.
LINE_BYTES = 2**19
# The rule of `export.model.sentence_splitting.FENCE`.
FENCE = re.compile(rb"[ \t]*(?:```|~~~)")
END_OF_FENCE = re.compile(rb"[ \t]*(?:```|~~~)[ \t]*\r?\n?\Z")


def pair_files(
    folder: pathlib.Path, output: pathlib.Path | None
) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """Yields pairs of an input file and its output file.

    Hidden files are skipped. Output names lose the suffix `.gz`.

    Args:
        folder: Input folder, searched recursively.
        output: Output folder; it is created if it does not exist.

    Raises:
        UserError: If `output` is not a folder, or lies within `folder`, or if
            two files have the same output.
    """
    if output is None or output.is_file():
        raise UserError(
            "--output must be a folder where --input is one. "
            f"Received: --output {output}"
        )
    if output.resolve().is_relative_to(folder.resolve()):
        raise UserError(
            "--output must be outside of --input. "
            f"Received: --input {folder}, --output {output}"
        )
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(p.startswith(".") for p in name.parts):
            target = output / str(name).removesuffix(".gz")
            if target in found:
                raise UserError(
                    "files in --input must have different names without .gz. "
                    f"Received: {found[target]}, {path}"
                )
            found[target] = path
    for target, path in found.items():
        yield path, target


def split_at_line_ends(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Splits a text at line ends into parts of about `PART_BYTES` bytes.

    Each part can be translated alone, since no sentence spans two lines.

    Yields:
        The text of a part, and whether it is of fenced code, which stays.
    """
    held, size, in_fence = [], 0, False
    for line in lines:
        begins = not in_fence and FENCE.match(line)
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
    if held:
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
    """Yields the translation of a text, part by part.

    Args:
        translate: Function from a list of texts to the outputs of the
            signature `translate_document`.
        lines: The text, UTF-8, with its line ends.
        counts: Counter, as in `translate_lines`.

    Raises:
        InvalidDocumentError: If the text is not UTF-8.
    """
    for part, is_code in split_at_line_ends(lines):
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
        for doubt in ("truncated", "suspicious"):
            counts[doubt] += int(outputs.get(doubt, [False])[0])
        yield outputs["translation"][0]
