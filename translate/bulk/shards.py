"""Splits the input files into shards of lines for the Beam workers.

A file `text.en.gz` becomes `text.en-00000-of-00017.gz` and so on. The lines of
a shard depend only on the file and on the number of lines a shard, so a run
that was killed resumes. Paths are those of Beam: local ones, or `gs://…`,
`s3://…`, `hdfs://…` with the extra of Beam that they need.
"""

import contextlib
import io
import itertools
import json
import pathlib
import uuid
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from command_line.errors import UserError, first_line, refuse_damage
from command_line.text_files import decompress, strip_byte_order_mark
from documents.formats import find_format

# Beam must not decompress: this module reads and writes gzip itself.
PLAIN = {"compression_type": CompressionTypes.UNCOMPRESSED}
PLAN = "bulk.json"


class Shard(NamedTuple):
    """Some lines of a file."""

    path: str
    name: str  # Of the output file, without `.gz`.
    start: int  # Offset of its first byte in the unpacked file.
    first: int  # Number of its first line, from 1.
    lines: int


def check_file_system(option: str, path: str) -> None:
    """Refuses a path that the installed Beam cannot access."""
    try:
        FileSystems.get_filesystem(path)
    except ValueError as error:
        raise UserError(
            f"{option} must be of a file system that Beam has. Received: "
            f"{path}: {first_line(error)}"
        ) from None


def find_inputs(pattern: str) -> dict[str, str]:
    """Returns the files that match a pattern, by the names of their outputs.

    Raises:
        UserError: If no file matches, if one is a document, or if two would have
            the same output.
    """
    (match,) = FileSystems.match([pattern])
    paths = {}
    for path in sorted(metadata.path for metadata in match.metadata_list):
        name = FileSystems.split(path)[1].removesuffix(".gz")
        if find_format(pathlib.PurePath(name)) not in (None, "text"):
            raise UserError(
                "--input must be files of a sentence a line; `python -m translate` "
                f"takes documents. Received: {path}"
            )
        if name in paths:
            raise UserError(
                "--input must be files of different names. "
                f"Received: {paths[name]} and {path}"
            )
        paths[name] = path
    if not paths:
        raise UserError(f"no such file: {pattern}")
    return paths


def split_into_shards(
    path: str, name: str, shard_lines: int
) -> tuple[list[Shard], dict]:
    """Splits a file, plain or gzip, into shards; the last one may be shorter.

    Returns the shards (an empty one if the file is empty), and the values that
    identify the file.

    Raises:
        UserError: If it is a damaged gzip file.
    """
    starts, offset, lines, digest = [0], 0, 0, 0
    with open_input(path) as file:
        for line in file:
            if lines and lines % shard_lines == 0:
                starts.append(offset)
            offset += len(line)
            lines += 1
            digest = zlib.crc32(line, digest)
    number = len(starts)
    width = max(5, len(str(number)))
    shards = [
        Shard(
            path=path,
            name=f"{name}-{place:0{width}}-of-{number:0{width}}",
            start=start,
            first=1 + place * shard_lines,
            lines=min(shard_lines, lines - place * shard_lines),
        )
        for place, start in enumerate(starts)
    ]
    return shards, {"bytes": offset, "lines": lines, "crc32": digest}


def read_shard(shard: Shard) -> list[bytes]:
    """Returns the lines of a shard, without line ends.

    A gzip file is unpacked from its start.
    """
    with open_input(shard.path) as file:
        file.seek(shard.start)
        lines = itertools.islice(file, shard.lines)
        if not shard.start:
            lines = strip_byte_order_mark(lines)
        return [line.rstrip(b"\r\n") for line in lines]


@contextlib.contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    with (
        io.BufferedReader(FileSystems.open(path, **PLAIN)) as raw,
        decompress(raw, path) as file,
    ):
        yield file


@contextlib.contextmanager
def create(path: str) -> Iterator[BinaryIO]:
    """Opens a file that appears under its name when it is complete.

    Its temporary name is unique: another worker may write the same shard.
    """
    part = f"{path}.{uuid.uuid4().hex}.part"
    try:
        with FileSystems.create(part, **PLAIN) as file:
            yield file
        FileSystems.rename([part], [path])
    finally:
        if FileSystems.exists(part):
            FileSystems.delete([part])


def list_finished(output: str) -> set[str]:
    """Returns the names of the finished shards of a folder."""
    (match,) = FileSystems.match([FileSystems.join(output, "*.gz")])
    return {
        FileSystems.split(metadata.path)[1].removesuffix(".gz")
        for metadata in match.metadata_list
    }


def record_plan(output: str, settings: dict, inputs: dict[str, dict]) -> None:
    """Records the settings and inputs of a folder's shards, or compares them.

    A later run may add files, but no file may have changed.

    Raises:
        UserError: If the existing shards have other settings or inputs.
    """
    path = FileSystems.join(output, PLAN)
    noted = {"settings": settings, "inputs": {}}
    if FileSystems.exists(path):
        with refuse_damage(path), FileSystems.open(path, **PLAIN) as file:
            noted = {**noted, **json.load(file)}
    for kind, values in (("settings", settings), ("inputs", inputs)):
        for name, value in values.items():
            recorded = noted[kind].get(name, value)
            if recorded != value:
                raise UserError(
                    "--output must be a folder for one model, one number of "
                    "lines a shard, one of tokens a batch, and files that do "
                    f"not change. Received: {output}, of {name} {recorded}, "
                    f"and here it is {value}"
                )
    noted["inputs"] |= inputs
    with create(path) as file:
        file.write(json.dumps(noted, indent=1).encode())


def remove_temporary_files(output: str) -> None:
    """Removes the temporary files of workers that were killed."""
    (match,) = FileSystems.match([FileSystems.join(output, "*.part")])
    if parts := [metadata.path for metadata in match.metadata_list]:
        FileSystems.delete(parts)
