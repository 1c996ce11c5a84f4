"""Creates and finds the numbered versions of an export."""

import contextlib
import fcntl
import os
import pathlib
import shutil
from collections.abc import Iterator

from command_line.errors import UserError
from export.bundle.file_layout import CTRANSLATE2_MODEL, LITERT_STEP, SAVED_MODEL

# Formats, by the file that identifies each.
FORMATS = {
    SAVED_MODEL: "saved_model",
    CTRANSLATE2_MODEL: "ctranslate2",
    LITERT_STEP: "litert",
}
# Help text of the option --export-dir.
EXPORT_DIR = {
    "help": "folder that `python -m export` wrote; the newest version is used",
    "kind": pathlib.Path,
}


@contextlib.contextmanager
def new_version(
    export_dir: pathlib.Path, file: str, version: int | None = None
) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """Yields a temporary folder that becomes a version on success.

    It yields the folder of the version, which does not exist yet, and the empty
    temporary folder. What an export that was killed has left is removed. `file`
    identifies the format: all versions of a folder have one, since a server reads
    all of them. The version `None` takes the next number.

    Raises:
        UserError: If the version exists already, if the folder has versions of
            another format, or if another export writes into it.
    """
    export_dir.mkdir(parents=True, exist_ok=True)
    with locked(export_dir):
        for path in export_dir.glob(".*.part"):
            if path.name[1 : -len(".part")].isdecimal():
                shutil.rmtree(path)
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
        part = export_dir / f".{version}.part"
        part.mkdir()
        try:
            yield folder, part
            part.rename(folder)
        except BaseException:
            shutil.rmtree(part)
            raise


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """Locks an export for writing; the lock ends with the process."""
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


def find_version(
    export_dir: pathlib.Path, *files: str, version: int | None = None
) -> pathlib.Path:
    """Returns the folder of a version, by default of the newest.

    `files` are names of files that identify the formats that are wanted.
    """
    folders = {
        int(folder.name): folder
        for folder in find_versions(export_dir)
        if any((folder / file).exists() for file in files)
    }
    if not folders:
        raise no_version(export_dir, files)
    if version is None:
        version = max(folders)
    if version not in folders:
        raise UserError(
            f"--version must be one of {', '.join(map(str, sorted(folders)))}. "
            f"Received: {version}"
        )
    return folders[version]


def no_version(export_dir: pathlib.Path, files: tuple[str, ...]) -> UserError:
    """Returns the error for a folder without a usable version."""
    for file, name in FORMATS.items():
        if any(export_dir.glob(f"*/{file}")):
            wanted = [FORMATS[file] for file in files]
            return UserError(
                f"--export-dir must be of the format {' or '.join(wanted)}. "
                f"Received: {export_dir}, of the format {name}"
            )
    parent = export_dir.resolve().parent
    is_version = any((export_dir / file).exists() for file in FORMATS)
    hint = f", a version of the export {parent}" if is_version else ""
    return UserError(
        "--export-dir must be a folder that `python -m export` wrote. "
        f"Received: {export_dir}{hint}"
    )


def find_versions(export_dir: pathlib.Path) -> list[pathlib.Path]:
    return [path for path in export_dir.glob("*/") if path.name.isdecimal()]
