"""Trains a student on the translations of a teacher (Kim and Rush, 2016).

The teacher, an export, translates the training sources into a file in RUN_DIR;
a student learns from these pairs. All options but --teacher are those of
`python -m train`, without --train-target, --alignments and --drop-invalid, and with
validation files. The same command continues where it was interrupted.
"""

import argparse
import contextlib
import dataclasses
import fcntl
import hashlib
import itertools
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable

import train.__main__ as train_command
from command_line.errors import UserError, exit_on_user_error
from command_line.options import flag, option, parse_known_options
from command_line.text_files import read_lines
from train.data.corpus import refuse_pipe
from train.data_preparation import check_start
from train.loop.signal_handling import (
    ended_with_this_one,
    exit_now,
    handled_by,
    skip_thread_shutdown,
)
from train.options import FILES, PAIRS, Options, parse_options
from train.resolve_options import refuse_hold_out, resolve
from train.run.fine_tuning import load_initial_run
from train.run.run_description import read_arguments
from train.training_corpus import load_corpus

# Options that need the targets.
EXCLUDED = ("--train-pairs", "--train-target", "--alignments", "--drop-invalid")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistillationOptions:
    teacher: pathlib.Path = option(
        help="folder that `python -m export` wrote, such as an ensemble",
        kind=pathlib.Path,
        metavar="EXPORT_DIR",
    )


def translate_sources(
    teacher: pathlib.Path, sources: pathlib.Path, targets: pathlib.Path
) -> None:
    """Writes a teacher's translation of each line; continues a started file."""
    part = targets.with_name(f"{targets.name}.part")
    with part.open("ab+") as file:
        lock(file, part)
        if targets.exists():
            part.unlink(missing_ok=True)
            return
        done = drop_incomplete_line(file)
        if done:
            print(f"continuing after line {done:,} of {sources}")
        process = subprocess.Popen(
            [sys.executable, "-m", "translate", "--export-dir", str(teacher)],
            stdin=subprocess.PIPE,
            stdout=file,
        )
        lines = itertools.islice(read_lines(sources), done, None)
        count = done + feed(process, lines)
        if process.returncode:
            if not drop_incomplete_line(file):
                part.unlink()
            raise SystemExit(process.returncode)
        written = drop_incomplete_line(file)
        if written != count:
            raise UserError(
                f"{part} must have a line for each of {sources}. "
                f"Received: {written} and {count} lines"
            )
        part.rename(targets)


def feed(process: subprocess.Popen, lines: Iterable[str]) -> int:
    """Writes lines to a process, and waits for its end; returns their number."""
    count = 0
    with ended_with_this_one(process):
        # A process that has failed reads no more.
        try:
            with contextlib.suppress(BrokenPipeError):
                for line in lines:
                    process.stdin.write(f"{line}\n".encode())
                    count += 1
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        process.wait()
    return count


def lock(file, path: pathlib.Path) -> None:
    """Locks a file; `translate`, which writes it, inherits the lock."""
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


def name_of(teacher: pathlib.Path, source: pathlib.Path) -> str:
    """Returns a name for the translations, which depends on both."""
    try:
        digest = hashlib.sha256(digest_of(source))
    except OSError:
        raise UserError(f"no such file: {source}") from None
    versions = [p for p in teacher.glob("[0-9]*/") if p.name.isdecimal()]
    if not versions:
        raise UserError(
            "--teacher must be a folder that `python -m export` wrote. "
            f"Received: {teacher}"
        )
    newest = max(versions, key=lambda path: int(path.name))
    for path in sorted(newest.rglob("*")):
        if path.is_file():
            digest.update(digest_of(path))
    return digest.hexdigest()[:12]


def digest_of(path: pathlib.Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def check_training(given: Options) -> None:
    """Refuses wrong options of the training before the teacher translates."""
    start = load_initial_run(given.run.init_from, given.run.extend_vocabulary)
    resolve(given, start, read_arguments(given.run.run_dir))
    refuse_hold_out(given.corpus, "the held-out targets would be the teacher's")
    check_start(given, load_corpus(given)[0], start)
    for name in (*FILES[2:], PAIRS[1]):
        path = getattr(given.corpus, name)
        if path and not path.is_file():
            raise UserError(f"no such file: {path}")


def run(argv: list[str] | None) -> list[str]:
    """Translates the sources; returns the options of the student's training."""
    parser = argparse.ArgumentParser(
        prog="python -m train.distill", description=__doc__
    )
    own, rest = parse_known_options(parser, DistillationOptions, argv)
    given = parse_options(rest)
    source = given.corpus.train_source
    # The file of --config may name them.
    excluded = [w for w in rest if w.partition("=")[0] in EXCLUDED]
    of_targets = ("alignments", "drop_invalid")
    excluded += [flag(name) for name in of_targets if getattr(given.corpus, name)]
    if excluded:
        raise UserError(
            f"{', '.join(EXCLUDED)} must be left out, since the teacher "
            f"translates. Received: {excluded[0]}"
        )
    if source is None:
        raise UserError(
            "--train-source must be the text that the teacher translates. "
            "Received: none"
        )
    refuse_pipe(source)
    run_dir = given.run.run_dir
    targets = run_dir / f"distilled-{name_of(own.teacher, source)}.txt"
    rest += ["--train-target", str(targets)]
    check_training(parse_options(rest))
    others = [path.name for path in run_dir.glob("distilled-*.txt") if path != targets]
    if others and read_arguments(run_dir):
        raise UserError(
            "--teacher and --train-source must be those of the run in "
            f"{run_dir}, whose text is {others[0]}; take another --run-dir. Received: "
            f"--teacher {own.teacher}, with which it would be {targets.name}"
        )
    run_dir.mkdir(parents=True, exist_ok=True)
    translate_sources(own.teacher, source, targets)
    return rest


def main(argv: list[str] | None = None) -> None:
    with handled_by(exit_now), exit_on_user_error():
        options = run(argv)
    train_command.main(options)


if __name__ == "__main__":
    # Log files get each line at once.
    sys.stdout.reconfigure(line_buffering=True)
    with skip_thread_shutdown():
        main()
