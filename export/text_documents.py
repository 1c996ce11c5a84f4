"""Whole texts, in files or folders, for `export.translate --documents`."""

import pathlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

from command_line.errors import NotTextError
from command_line.errors import UserError

PIECE = 2**14  # Bytes of a text that are translated at a time.
FENCES = (b"```", b"~~~")


def pair_files(
    folder: pathlib.Path, output: pathlib.Path | None
) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """Yields the files of a folder, each with that of its translation.

    Hidden ones are left out, and `.gz` of what is written.

    Args:
        folder: The folder, searched through.
        output: Another one, which need not be there.

    Raises:
        UserError: If the folder for the translations is none, or is within
            the other.
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


def cut_pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yields a text in pieces of about `PIECE` bytes, cut at ends of lines.

    Each can be translated alone: no sentence goes on in the next line, and
    fenced code stays whole.
    """
    held, size, in_fence = [], 0, False
    for line in lines:
        held.append(line)
        size += len(line)
        if line.lstrip(b" \t").startswith(FENCES):
            in_fence = not in_fence
        if size >= PIECE and not in_fence:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def translate_text(
    translate: Callable, lines: Iterable[bytes], counts: dict[str, int]
) -> Iterator[bytes]:
    """Yields the translation of a text, in pieces.

    Args:
        translate: Function from a list of texts to the outputs of the
            signature `translate_document`.
        lines: The text, UTF-8, with its line ends.
        counts: As of `translate_lines`.

    Raises:
        NotTextError: If it is none.
    """
    for piece in cut_pieces(lines):
        try:
            piece.decode("utf-8")
        except UnicodeDecodeError as error:
            raise NotTextError(
                f"text must be UTF-8. Received: byte 0x{piece[error.start]:02x}"
            ) from None
        outputs = translate([piece])
        counts["lines"] += 1
        for doubt in ("truncated", "suspicious"):
            counts[doubt] += int(outputs.get(doubt, [False])[0])
        yield outputs["translation"].numpy()[0]
