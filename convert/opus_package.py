"""Finds the files of an original OPUS-MT or Tatoeba-Challenge download.

It is a zip, or a folder, with Marian's model (`*.npz`), `decoder.yml`, the
SentencePiece models `source.spm` and `target.spm`, and the ids of their pieces:
one `*.vocab.yml`, or `*.src.vocab.yml` and `*.trg.vocab.yml`.
"""

import contextlib
import pathlib
import tempfile
import zipfile
from collections.abc import Iterator

from command_line.errors import UserError, refuse_damage
from convert.tensor_files import check_unpacked_size


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
            archive.extractall(folder)
        yield pathlib.Path(folder)


def find_download(folder: pathlib.Path) -> tuple[pathlib.Path, list, list]:
    """Returns the paths of model, SentencePiece models and tables of a download."""
    sides = [".src", ".trg"] if list(folder.rglob("[!.]*.src.vocab.yml")) else ["", ""]
    return (
        find(folder, "*.npz"),
        [find(folder, f"{side}.spm") for side in ("source", "target")],
        [find(folder, f"*{side}.vocab.yml") for side in sides],
    )


def find(folder: pathlib.Path, pattern: str) -> pathlib.Path:
    """Returns the only file of a pattern; macOS adds `._*`."""
    found = sorted(p for p in folder.rglob(pattern) if not p.name.startswith("."))
    if len(found) != 1:
        names = ", ".join(str(path.relative_to(folder)) for path in found)
        raise UserError(
            "--model must be a file of Marian, or a download of OPUS-MT, which "
            f"has one {pattern}. Received: {names or 'none'} in it"
        )
    return found[0]
