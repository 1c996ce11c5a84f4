"""Finds the files of an original OPUS-MT or Tatoeba-Challenge download.

It is a zip, or a folder, with Marian's model (`*.npz`), `decoder.yml`, the
SentencePiece models `source.spm` and `target.spm`, and the ids of their pieces:
one `*.vocab.yml`, or `*.src.vocab.yml` and `*.trg.vocab.yml`.
"""

import contextlib
import dataclasses
import pathlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterator

from command_line.errors import UserError, first_line
from convert.run_folder_writer import LICENSES
from convert.tensor_files import DAMAGED, check_unpacked_size, damaged_file_error

NEEDED = ("*.npz", "*.spm", "*.yml")


@dataclasses.dataclass(frozen=True)
class Download:
    """The files of a download.

    Attributes:
        model: Path of Marian's model.
        protos: Paths of the SentencePiece models of sources and of targets.
        tables: Paths of the ids of their pieces; twice the same if they are
            shared.
    """

    model: pathlib.Path
    protos: tuple[pathlib.Path, pathlib.Path]
    tables: tuple[pathlib.Path, pathlib.Path]


@contextlib.contextmanager
def unpack(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a temporary folder with the files of a zip; any other path as is.

    Raises:
        UserError: If the zip is damaged.
    """
    if path.suffix != ".zip":
        yield path
        return
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            with zipfile.ZipFile(path) as archive:
                copy_members(archive, path, folder)
        except DAMAGED as error:
            raise damaged_file_error(path, "a zip archive", first_line(error)) from None
        yield folder


def copy_members(
    archive: zipfile.ZipFile, path: pathlib.Path, folder: pathlib.Path
) -> None:
    """Copies the needed members of a zip into one folder, by their names.

    Of several licences of a name the first is kept.
    """
    check_unpacked_size(archive.infolist(), path)
    for info in archive.infolist():
        inside = pathlib.PurePosixPath(info.filename)
        is_needed = any(inside.match(pattern) for pattern in NEEDED)
        is_license = any(inside.match(pattern) for pattern in LICENSES)
        if is_license and (folder / inside.name).exists():
            continue
        if is_needed or is_license:
            with (
                archive.open(info) as source,
                open(folder / inside.name, "xb") as target,
            ):
                shutil.copyfileobj(source, target)


def find_download(folder: pathlib.Path) -> Download:
    """Finds the files of a download in its folder.

    Raises:
        UserError: If one is missing, or not the only one.
    """
    (model,) = find(folder, "*.npz")
    protos = find(folder, "source.spm") + find(folder, "target.spm")
    if list(folder.glob("*.src.vocab.yml")):
        tables = find(folder, "*.src.vocab.yml") + find(folder, "*.trg.vocab.yml")
    else:
        tables = 2 * find(folder, "*.vocab.yml")
    return Download(model, protos, tables)


def find(folder: pathlib.Path, pattern: str) -> tuple[pathlib.Path]:
    """Returns the only file of a pattern."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        raise UserError(
            "--model must be a file of Marian, or a download of OPUS-MT, which "
            f"has one {pattern}. Received: {names or 'none'} in it"
        )
    return (found[0],)
