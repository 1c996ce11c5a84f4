"""What a worker is given at a time: some lines of a file, under a name.

A file `text.en.gz` becomes `text.en-00000-of-00017.gz` and so on. Which lines
are in which hangs on the file and on the number of lines a shard alone, so a
run that was killed goes on where it was. Files are those of Beam: of this
machine, or `gs://…`, `s3://…`, `hdfs://…` with Beam's extra for it.
"""

import contextlib
import io
import itertools
import json
import uuid
import zlib
from collections.abc import Iterator
from typing import BinaryIO
from typing import NamedTuple

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from command_line.errors import UserError
from command_line.errors import first_line
from command_line.errors import refuse_damage
from command_line.text_files import unpack
from command_line.text_files import without_mark

# Both are taken as they are: gzip is ours to read, and to write.
PLAIN = {"compression_type": CompressionTypes.UNCOMPRESSED}
PLAN = "bulk.json"


class Shard(NamedTuple):
    """Some lines of a file.

    Attributes:
        path: Of the file.
        name: Of its output, without `.gz`.
        start: Int, the byte at which it begins, where the file is unpacked.
        first: Int, the number of its first line, from 1.
        lines: Int, how many it has.
    """

    path: str
    name: str
    start: int
    first: int
    lines: int


def check_file_system(option: str, path: str) -> None:
    """Refuses a path that Beam, as it is installed, cannot reach."""
    try:
        FileSystems.get_filesystem(path)
    except ValueError as error:
        raise UserError(
            f"{option} must be of a file system that Beam has. Received: "
            f"{path}: {first_line(error)}"
        ) from None


def find_inputs(pattern: str) -> dict[str, str]:
    """Returns the files that fit a pattern, by the names of their outputs.

    Raises:
        UserError: If there is none, or if two would have the same outputs.
    """
    (match,) = FileSystems.match([pattern])
    paths = {}
    for path in sorted(metadata.path for metadata in match.metadata_list):
        name = FileSystems.split(path)[1].removesuffix(".gz")
        if name in paths:
            raise UserError(
                "--input must be files of different names. "
                f"Received: {paths[name]} and {path}"
            )
        paths[name] = path
    if not paths:
        raise UserError(f"no such file: {pattern}")
    return paths


def cut(path: str, name: str, shard_lines: int) -> tuple[list[Shard], dict]:
    """Cuts a file into shards; the last is shorter.

    Args:
        path: Of the file, plain or gzip.
        name: Of its outputs.
        shard_lines: Positive int, lines a shard.

    Returns:
        The shards, one without a line if the file is empty, and by what the
        file is known again.

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

    Of a gzip file all that stands before them is unpacked, too.
    """
    with open_input(shard.path) as file:
        file.seek(shard.start)
        lines = itertools.islice(file, shard.lines)
        if not shard.start:
            lines = without_mark(lines)
        return [line.rstrip(b"\r\n") for line in lines]


@contextlib.contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    with (
        io.BufferedReader(FileSystems.open(path, **PLAIN)) as raw,
        unpack(raw, path) as file,
    ):
        yield file


@contextlib.contextmanager
def create(path: str) -> Iterator[BinaryIO]:
    """Opens a file that is there when it is whole.

    Until then it has a name of its own: another worker, or one whose run was
    killed, may be at the same one.
    """
    part = f"{path}.{uuid.uuid4().hex}.part"
    try:
        with FileSystems.create(part, **PLAIN) as file:
            yield file
        FileSystems.rename([part], [path])
    finally:
        if FileSystems.exists(part):
            FileSystems.delete([part])


def list_made(output: str) -> set[str]:
    """Returns the names of the shards that are in a folder."""
    (match,) = FileSystems.match([FileSystems.join(output, "*.gz")])
    return {
        FileSystems.split(metadata.path)[1].removesuffix(".gz")
        for metadata in match.metadata_list
    }


def keep_plan(output: str, settings: dict, inputs: dict[str, dict]) -> None:
    """Notes what the shards of a folder are made of, or compares it.

    A later run may have other files, but no file that has changed.

    Args:
        output: The folder.
        settings: What all of them are made with.
        inputs: By what each file is known again, by name.

    Raises:
        UserError: If the shards that are there were made of something else.
    """
    path = FileSystems.join(output, PLAN)
    noted = {"settings": settings, "inputs": {}}
    if FileSystems.exists(path):
        with refuse_damage(path), FileSystems.open(path, **PLAIN) as file:
            noted = {**noted, **json.load(file)}
    there = {**noted["settings"], **noted["inputs"]}
    here = {**settings, **inputs}
    for name in here:
        if name in there and there[name] != here[name]:
            raise UserError(
                "--output must be a folder for one model, one number of lines "
                "a shard, one of tokens a batch, and files that do not change. "
                f"Received: {output}, of {name} {there[name]}, and here it is "
                f"{here[name]}"
            )
    noted["inputs"] |= inputs
    with create(path) as file:
        file.write(json.dumps(noted, indent=1).encode())


def remove_parts(output: str) -> None:
    """Removes what workers that were killed have left in a folder."""
    (match,) = FileSystems.match([FileSystems.join(output, "*.part")])
    if parts := [metadata.path for metadata in match.metadata_list]:
        FileSystems.delete(parts)
