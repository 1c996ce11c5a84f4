"""Trains a student on the translations of a teacher (Kim and Rush, 2016).

The teacher, an export, translates the training sources into a file in RUN_DIR;
a student learns from these pairs. All options but --teacher are those of
`python -m train`, without --train-target. The same command continues where it
was interrupted.
"""

import argparse
import contextlib
import fcntl
import hashlib
import itertools
import os
import pathlib
import subprocess
import sys

import train.__main__ as train_command
from command_line.errors import UserError
from command_line.errors import exit_on_user_error
from command_line.text_files import read_lines
from train.options import parse_options
from train.resolve_options import check_corpus


def translate_sources(
    teacher: pathlib.Path, sources: pathlib.Path, targets: pathlib.Path
) -> None:
    """Writes a teacher's translation of each line; continues a started file.

    Args:
        teacher: Folder of an export, of any format.
        sources: Text file, one sentence a line.
        targets: Path of the translations, which `FILE.part` becomes.

    Raises:
        UserError: If another process writes them, or if lines are missing.
        SystemExit: If `export.translate` failed; it has said why.
    """
    if targets.exists():
        return
    part = targets.with_name(f"{targets.name}.part")
    with part.open("ab+") as file:
        lock(file, part)
        done = drop_incomplete_line(file)
        if done:
            print(f"continuing after line {done:,} of {sources}")
        process = subprocess.Popen(
            [sys.executable, "-m", "export.translate"]
            + ["--export-dir", str(teacher)],
            stdin=subprocess.PIPE,
            stdout=file,
        )
        count = done
        with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
            for line in itertools.islice(read_lines(sources), done, None):
                pipe.write(f"{line}\n".encode())
                count += 1
        if code := process.wait():
            raise SystemExit(code)
        written = drop_incomplete_line(file)
        if written != count:
            raise UserError(
                f"{part} must have a line for each of {sources}. "
                f"Received: {written} and {count} lines"
            )
    part.rename(targets)


def lock(file, path: pathlib.Path) -> None:
    """Locks a file; `export.translate`, which writes it, inherits the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(
            f"another process is writing to {path}. Wait for its end, or take "
            "another --run-dir"
        ) from None


def drop_incomplete_line(file) -> int:
    """Cuts a file after its last line end; returns the number of lines."""
    file.seek(0)
    count = size = 0
    for line in file:
        if line.endswith(b"\n"):
            count += 1
            size += len(line)
    os.ftruncate(file.fileno(), size)
    return count


def parse_teacher(argv: list[str] | None) -> tuple[pathlib.Path, list[str]]:
    """Returns the teacher's folder, and the options of `python -m train`."""
    parser = argparse.ArgumentParser(
        prog="python -m train.distill", description=__doc__, allow_abbrev=False
    )
    parser.add_argument(
        "--teacher",
        type=pathlib.Path,
        required=True,
        metavar="EXPORT_DIR",
        help="folder that `python -m export` wrote, such as an ensemble",
    )
    found, rest = parser.parse_known_args(argv)
    return found.teacher, rest


def name_of(teacher: pathlib.Path, sources: pathlib.Path) -> str:
    """Returns a name for the translations, which depends on both."""
    try:
        with sources.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
    except OSError:
        raise UserError(f"no such file: {sources}") from None
    versions = sorted(path.name for path in teacher.glob("[0-9]*/"))
    digest.update(f"{teacher.resolve()} {versions[-1:]}".encode())
    return digest.hexdigest()[:12]


def run(argv: list[str] | None) -> list[str]:
    """Translates the sources; returns the options of the student's training.

    Raises:
        UserError: If the sources are missing, or the targets are given.
    """
    teacher, rest = parse_teacher(argv)
    given = parse_options(rest)
    source, target = given.corpus.train_source, given.corpus.train_target
    if source is None or target is not None:
        raise UserError(
            "--train-source must come without --train-target, since the "
            f"teacher translates. Received: {target or 'neither'}"
        )
    run_dir = given.run.run_dir
    run_dir.mkdir(parents=True, exist_ok=True)
    targets = run_dir / f"distilled-{name_of(teacher, source)}.txt"
    rest += ["--train-target", str(targets)]
    check_corpus(parse_options(rest))
    translate_sources(teacher, source, targets)
    return rest


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        options = run(argv)
    train_command.main(options)


if __name__ == "__main__":
    # Log files get each line at once.
    sys.stdout.reconfigure(line_buffering=True)
    main()
