"""Measures what the guide reports, and writes it to one file.

    python -m benchmarks.all [NAME ...] [--quick]

`measurements.toml`, beside this file, lists the names with their commands, and
the variables that say where corpora are. Their output goes to `results.json`,
with the processor, the versions, the commit and the seconds, and from there to
the pages of the guide: `{{ measured NAME }}` shows commands and output. All
take hours. The same command resumes: it skips what was measured with this code
on this machine.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shlex
import string
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator

from benchmarks.shared.interleaved_runs import ROOT, cpu_field, describe_machine
from command_line.errors import UserError, exit_on_user_error
from command_line.text_files import open_atomically

MEASUREMENTS = ROOT / "benchmarks/measurements.toml"
RESULTS = ROOT / "benchmarks/results.json"
QUICK_RESULTS = ROOT / "build/quick_results.json"
PACKAGES = ("tensorflow", "keras", "ctranslate2", "ai-edge-litert", "torch")
# Features of a processor that decide the speed of matrix products.
CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
# Beyond this load the machine does something else.
MAX_LOAD = 0.7
# Changes of these files change no figure.
PATHS = (".", ":!docs", ":!tests", ":!*.md", ":!benchmarks/results.json")


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of a measurement.

    Attributes:
        text: String, as it stands on the pages, over several lines.
        is_kept: Bool, whether its output is a result.
    """

    text: str
    is_kept: bool

    def run(self) -> str:
        """Runs it, and returns what it wrote to standard output.

        Raises:
            UserError: If a variable is missing or the command fails.
        """
        try:
            text = string.Template(self.text).substitute(os.environ)
        except KeyError as error:
            raise UserError(
                f"the variable {error.args[0]} must be set; "
                f"{MEASUREMENTS.name} describes it. Received: none, for "
                f"{self.text.splitlines()[0]}"
            ) from None
        words = [
            sys.executable if word == "python" else word
            for word in shlex.split(text.replace("\\\n", " "))
        ]
        print(f"+ {shlex.join(words)}", file=sys.stderr)
        stdout = subprocess.PIPE if self.is_kept else None
        done = subprocess.run(words, cwd=ROOT, stdout=stdout, text=True)
        if done.returncode:
            raise UserError(
                "the command must succeed. Received: status "
                f"{done.returncode} of {shlex.join(words)}"
            )
        return done.stdout or ""


def read_measurements(is_quick: bool) -> dict[str, list[Command]]:
    """Returns the commands of each measurement."""
    tables = tomllib.loads(MEASUREMENTS.read_text("utf-8"))
    key = "quick" if is_quick else "commands"
    return {
        name: split_commands(table[key])
        for name, table in tables.items()
        if key in table
    }


def split_commands(text: str) -> list[Command]:
    """Splits lines into commands; `\\` at the end continues one."""
    texts = re.split(r"(?<!\\)\n", text.strip())
    return [Command(t.removeprefix("@"), t[0] != "@") for t in texts]


def describe_origin() -> dict:
    """Returns the commit of the code, the processor and the versions."""
    machine = describe_machine(PACKAGES)
    flags = cpu_field("flags").split()
    return {
        "commit": git("log", "-1", "--format=%h", "--", *PATHS),
        "processor": machine["processor"],
        "cores": machine["cores"],
        "flags": [flag for flag in CPU_FLAGS if flag in flags],
        "python": machine["python"],
        "packages": {k: v for k, v in machine["packages"].items() if v},
    }


def git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


def check_conditions() -> None:
    """Refuses a machine that is busy, and code that is not committed."""
    load = os.getloadavg()[0]
    if load > MAX_LOAD:
        raise UserError(
            "nothing else may run on the machine (--quick ignores it). "
            f"Received: a load of {load:.1f}"
        )
    changed = git("status", "--porcelain", "--", *PATHS)
    if changed:
        raise UserError(
            "the code must be committed (--quick ignores it). Received: "
            f"changes of {changed.split()[-1]}"
        )


def measure(
    name: str, commands: list[Command], origin: dict, results: dict
) -> Iterator[None]:
    """Runs the commands that have no result yet.

    Yields before the first one and after each, so that the caller can save.
    """
    entry = results.get(name)
    if not entry or entry["origin"] != origin:
        entry = results[name] = {"origin": origin, "commands": []}
    elif len(entry["commands"]) < len(commands):
        # The command that was interrupted may resume, and take less time.
        entry["resumed"] = True
    yield
    for command in commands[len(entry["commands"]) :]:
        started = time.monotonic()
        output = command.run()
        entry["commands"].append(
            {
                "command": command.text,
                "seconds": round(time.monotonic() - started, 1),
                "output": output,
            }
        )
        yield


def save(results: dict, path: pathlib.Path) -> None:
    path.parent.mkdir(exist_ok=True)
    with open_atomically(path) as file:
        text = json.dumps(results, indent=1, ensure_ascii=False)
        file.write(f"{text}\n".encode())


def describe_results(name: str, path: pathlib.Path = RESULTS) -> str:
    """Returns the commands of a measurement, and their results, as Markdown.

    Raises:
        ValueError: If it was not measured, or not all of it.
    """
    entry = json.loads(path.read_text("utf-8")).get(name, {"commands": []})
    if len(entry["commands"]) < len(read_measurements(is_quick=False)[name]):
        raise ValueError(f"`python -m benchmarks.all {name}` comes first")
    parts, waiting = [], []
    for done in entry["commands"]:
        waiting.append(done["command"])
        if done["output"]:
            parts += [in_code("\n".join(waiting)), show(done["output"])]
            waiting = []
    return "\n\n".join([*parts, describe_conditions(entry)])


def in_code(text: str) -> str:
    return f"```\n{text}\n```"


def show(output: str) -> str:
    """Returns Markdown: tables stay, and other output becomes code."""
    output = output.strip("\n")
    return output if re.search(r"^\|-", output, re.M) else in_code(output)


def describe_conditions(entry: dict) -> str:
    """Returns a line with machine, versions, commit, and minutes if known."""
    origin = entry["origin"]
    versions = ", ".join(map(" ".join, origin["packages"].items()))
    line = (
        f"{origin['cores']} cores, {origin['processor']} "
        f"({', '.join(origin['flags'])}); {versions}; commit {origin['commit']}"
    )
    if not entry.get("resumed"):
        seconds = sum(done["seconds"] for done in entry["commands"])
        line += f"; {seconds / 60:.1f} minutes in all"
    return f"*{line}.*"


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    names = read_measurements(is_quick=False)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.all",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"what to measure (default: all): {', '.join(names)}",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="runs shorter commands, and writes build/quick_results.json",
    )
    args = parser.parse_args(argv)
    for name in args.names:
        if name not in names:
            raise UserError(f"NAME must be one of {', '.join(names)}. Received: {name}")
    return args


def run(args: argparse.Namespace) -> None:
    if not args.quick:
        check_conditions()
    measurements = read_measurements(args.quick)
    path = QUICK_RESULTS if args.quick else RESULTS
    results = {}
    with contextlib.suppress(FileNotFoundError):
        results = json.loads(path.read_text("utf-8"))
    origin = describe_origin()
    failed = []
    for name in args.names or measurements:
        if name not in measurements:  # It has no quick commands.
            continue
        try:
            for _ in measure(name, measurements[name], origin, results):
                save(results, path)
        except UserError as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr)
    if failed:
        raise UserError(
            f"all must be measured. Received: failures of {', '.join(failed)}"
        )
    print(f"written to {path.relative_to(ROOT)}")


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_arguments(argv))


if __name__ == "__main__":
    main()
