"""`EXPORT_DIR/VERSION/`, the layout of TF Serving: each version a number."""

import contextlib
import fcntl
import os
import pathlib
import shutil
from collections.abc import Iterator

from command_line.errors import UserError
from export.bundle.layout import SCORES
from export.bundle.layout import SERVER_FILES
from export.bundle.layout import refusal


@contextlib.contextmanager
def new_version(
    export_dir: pathlib.Path, file: str, version: int | None = None
) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """Gives a folder that becomes a version in the end: whole, or not.

    What an export that died has left is removed; a lock on the folder says
    that none is alive.

    Args:
        export_dir: Folder of the versions.
        file: Name of the file by which the format is known. The versions of
            a folder have one format, for a server reads them all.
        version: Int, the folder's name; `None` takes the next number.

    Yields:
        The folder of the version, which is not there yet, and the empty one to
        write into.

    Raises:
        UserError: If the version is there already, or one of another format,
            or if another export writes into the same folder.
    """
    export_dir.mkdir(parents=True, exist_ok=True)
    with locked(export_dir):
        remove_left_over(export_dir)
        if version is None:
            taken = [int(path.name) for path in find_versions(export_dir)]
            version = max([0, *taken]) + 1
        folder = export_dir / str(version)
        if folder.exists():
            raise UserError(
                "--version must be a number that is not taken. "
                f"Received: {version}, and {folder} exists"
            )
        for other in find_versions(export_dir):
            if not (other / file).exists():
                raise UserError(
                    "--export-dir must be a folder for one format. "
                    f"Received: {export_dir}, and {other} has no {file}"
                )
        beside = export_dir / f".{version}.part"
        beside.mkdir()
        try:
            yield folder, beside
            beside.rename(folder)
        except BaseException:
            shutil.rmtree(beside)
            raise


def remove_left_over(export_dir: pathlib.Path) -> None:
    """Removes what an export that died was writing, and nothing else."""
    for path in export_dir.glob(".*.part"):
        name = path.name[1 : -len(".part")]
        if name.isdecimal():
            shutil.rmtree(path)
        elif name in (*SERVER_FILES, pathlib.Path(SCORES).name):
            path.unlink()


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """Keeps others from writing to an export; the lock ends with the process.

    Raises:
        UserError: If another process has it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another process is writing to {folder}. Wait for its end, "
                "or take another --export-dir"
            ) from None
        yield
    finally:
        os.close(descriptor)


def newest_version(export_dir: pathlib.Path, *files: str) -> pathlib.Path:
    """Returns the folder of the newest version that has one of `files`.

    Raises:
        UserError: If there is none.
    """
    versions = [
        folder
        for folder in find_versions(export_dir)
        if any((folder / file).exists() for file in files)
    ]
    if not versions:
        raise UserError(refusal(export_dir))
    return max(versions, key=lambda folder: int(folder.name))


def find_versions(export_dir: pathlib.Path) -> list[pathlib.Path]:
    return [path for path in export_dir.glob("*/") if path.name.isdecimal()]
