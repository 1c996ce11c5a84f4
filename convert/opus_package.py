"""Finds the files of an original OPUS-MT or Tatoeba-Challenge download.

It is a zip, or a folder, with Marian's model (`*.npz`), `decoder.yml`, the
SentencePiece models `source.spm` and `target.spm`, and the ids of their pieces:
one `*.vocab.yml`, or `*.src.vocab.yml` and `*.trg.vocab.yml`.
"""

import contextlib
import pathlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterator

from command_line.errors import UserError, refuse_damage
from convert.run_folder_writer import LICENSES
from convert.tensor_files import check_unpacked_size

NEEDED = ("*.npz", "*.spm", "*.yml")


@contextlib.contextmanager
def unpack(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a temporary folder with the files of a zip; any other path as is."""
    if path.suffix != ".zip":
        yield path
        return
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    with tempfile.TemporaryDirectory() as folder:
        with (
            refuse_damage(path, ", and a zip archive"),
            zipfile.ZipFile(path) as archive,
        ):
            check_unpacked_size(archive, path)
            copy_members(archive, pathlib.Path(folder))
        yield pathlib.Path(folder)


def copy_members(archive: zipfile.ZipFile, folder: pathlib.Path) -> None:
    """Copies the needed members of a zip into one folder, by their names.

    Of several licences of a name the first is kept.

    Raises:
        UserError: If other needed members have the same name.
    """
    copied = {}
    for info in archive.infolist():
        inside = pathlib.PurePosixPath(info.filename)
        is_license = any(map(inside.match, LICENSES))
        is_needed = is_license or any(map(inside.match, NEEDED))
        if not is_needed or inside.name.startswith("."):  # macOS adds `._*`.
            continue
        first = copied.setdefault(inside.name, info)
        if first is info:
            with archive.open(info) as source, open(folder / inside.name, "xb") as copy:
                shutil.copyfileobj(source, copy)
        elif not is_license:
            raise UserError(
                "--model must be a zip with one file of each name. Received: "
                f"{first.filename} and {info.filename} in {archive.filename}"
            )


def find_model_files(folder: pathlib.Path) -> tuple[pathlib.Path, list, list]:
    """Returns the paths of model, SentencePiece models and tables of a download."""
    sides = [".src", ".trg"] if list(folder.glob("[!.]*.src.vocab.yml")) else ["", ""]
    return (
        find(folder, "*.npz"),
        [find(folder, f"{side}.spm") for side in ("source", "target")],
        [find(folder, f"*{side}.vocab.yml") for side in sides],
    )


def find(folder: pathlib.Path, pattern: str) -> pathlib.Path:
    """Returns the only file of a pattern."""
    found = sorted(p for p in folder.glob(pattern) if not p.name.startswith("."))
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        raise UserError(
            "--model must be a file of Marian, or a download of OPUS-MT, which "
            f"has one {pattern}. Received: {names or 'none'} in it"
        )
    return found[0]
