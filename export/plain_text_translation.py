"""Translates plain-text documents for `export.translate --documents`."""

import pathlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from command_line.errors import InvalidDocumentError
from command_line.errors import UserError

PART_BYTES = 2**14  # Bytes of a text that are translated at once.
FENCES = (b"```", b"~~~")


def pair_files(
    folder: pathlib.Path, output: pathlib.Path | None
) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """Yields pairs of an input file and its output file.

    Hidden files are skipped. Output names lose the suffix `.gz`.

    Args:
        folder: Input folder, searched recursively.
        output: Output folder; it is created if it does not exist.

    Raises:
        UserError: If `output` is not a folder, or lies within `folder`.
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
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(p.startswith(".") for p in name.parts):
            yield path, output / str(name).removesuffix(".gz")


def split_at_line_ends(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Splits a text at line ends into parts of about `PART_BYTES` bytes.

    Each part can be translated alone: no sentence spans two lines, and fenced
    code is never split.
    """
    held, size, in_fence = [], 0, False
    for line in lines:
        held.append(line)
        size += len(line)
        if line.lstrip(b" \t").startswith(FENCES):
            in_fence = not in_fence
        if size >= PART_BYTES and not in_fence:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


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
    for piece in split_at_line_ends(lines):
        try:
            piece.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidDocumentError(
                f"text must be UTF-8. Received: byte 0x{piece[error.start]:02x}"
            ) from None
        outputs = translate([piece])
        counts["lines"] += 1
        for doubt in ("truncated", "suspicious"):
            counts[doubt] += int(outputs.get(doubt, [False])[0])
        yield outputs["translation"].numpy()[0]
