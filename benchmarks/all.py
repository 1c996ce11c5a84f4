"""Measures what the guide reports, and writes it to one file.

    python -m benchmarks.all [NAME ...]

`measurements.toml`, beside this file, lists the names with their commands, and
the variables that say where corpora are. Their output goes to `results.json`,
with the processor, the versions, the commit and the seconds, and from there to
the pages of the guide: `{{ measured NAME }}` shows commands and output. All
take hours. The same command resumes: it skips what was measured with this code
on this machine.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib

from benchmarks.interleaved_runs import ROOT
from benchmarks.machine import describe_machine
from command_line.errors import UserError, exit_on_user_error
from command_line.text_files import write_atomically

MEASUREMENTS = ROOT / "benchmarks/measurements.toml"
RESULTS = ROOT / "benchmarks/results.json"
# Beyond this load the machine does something else.
MAX_LOAD = 0.7
# Changes of these files change no figure.
PATHS = (".", ":!docs", ":!tests", ":!*.md", ":!benchmarks/results.json")


def run_command(text: str) -> str:
    """Runs a command with Bash; returns its standard output, but for an `@` before it.

    Raises:
        UserError: If it fails, or names a variable that is not set.
    """
    command = text.removeprefix("@")
    scripts = pathlib.Path(sys.executable).parent  # Those of this environment.
    done = subprocess.run(
        ["bash", "-euxc", command],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE if command == text else None,
        text=True,
    )
    if done.returncode:
        raise UserError(
            f"the command must succeed. Received: status {done.returncode} of {command}"
        )
    return done.stdout or ""


def read_measurements() -> dict[str, list[str]]:
    """Returns the commands of each measurement: `\\` at an end continues one."""
    measurements = tomllib.loads(MEASUREMENTS.read_text("utf-8"))
    return {
        name: re.split(r"(?<!\\)\n", commands.strip())
        for name, commands in measurements.items()
    }


def describe_origin() -> dict:
    """Returns the commit of the code, and the machine."""
    commit = git("log", "-1", "--format=%h", "--", *PATHS)
    return {"commit": commit, **describe_machine()}


def git(*words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=ROOT, text=True).strip()


def check_conditions() -> None:
    """Refuses a machine that is busy, and code that is not committed."""
    load = os.getloadavg()[0]
    if load > MAX_LOAD:
        raise UserError(
            f"nothing else may run on the machine. Received: a load of {load:.1f}"
        )
    changed = git("status", "--porcelain", "--", *PATHS)
    if changed:
        raise UserError(
            f"the code must be committed. Received: changes of {changed.split()[-1]}"
        )


def measure(name: str, commands: list[str], origin: dict, results: dict, save) -> None:
    """Runs the commands that have no result yet; saves after each."""
    entry = results.get(name)
    if not entry or entry["origin"] != origin:
        entry = results[name] = {"origin": origin, "commands": []}
    elif len(entry["commands"]) < len(commands):
        # The command that was interrupted may resume, and take less time.
        entry["resumed"] = True
    for command in commands[len(entry["commands"]) :]:
        save()
        started = time.monotonic()
        output = run_command(command)
        seconds = round(time.monotonic() - started, 1)
        done = {"command": command.removeprefix("@")}
        entry["commands"].append({**done, "seconds": seconds, "output": output})
    save()


def describe_results(name: str, path: pathlib.Path = RESULTS) -> str:
    """Returns the commands of a measurement, and their results, as Markdown.

    Tables stay, and other output becomes code. The last line has machine,
    versions, commit, and minutes if known. Of what was not measured, or not all
    of it, only the commands are shown.
    """
    entry = json.loads(path.read_text("utf-8")).get(name, {"commands": []})
    commands = read_measurements()[name]
    if len(entry["commands"]) < len(commands):
        code = fenced_code("\n".join(command.removeprefix("@") for command in commands))
        return f"{code}\n\n*Not measured.*"
    parts, waiting = [], []
    for done in entry["commands"]:
        waiting.append(done["command"])
        if output := done["output"].strip("\n"):
            is_table = re.search(r"^\|-", output, re.M)
            parts += [
                fenced_code("\n".join(waiting)),
                output if is_table else fenced_code(output),
            ]
            waiting = []
    origin = entry["origin"]
    versions = ", ".join(map(" ".join, origin["packages"].items()))
    line = (
        f"{origin['cores']} cores, {origin['processor']} "
        f"({', '.join(origin['flags'])}); {versions}; commit {origin['commit']}"
    )
    if not entry.get("resumed"):
        seconds = sum(done["seconds"] for done in entry["commands"])
        line += f"; {seconds / 60:.1f} minutes in all"
    return "\n\n".join([*parts, f"*{line}.*"])


def fenced_code(text: str) -> str:
    return f"```\n{text}\n```"


def run(names: list[str]) -> None:
    """Runs measurements, and saves the results after each command.

    Raises:
        UserError: If the machine is busy or the code not committed, or, after
            all others were measured, if some could not be.
    """
    check_conditions()
    results = {}
    with contextlib.suppress(FileNotFoundError):
        results = json.loads(RESULTS.read_text("utf-8"))
    origin = describe_origin()

    def save() -> None:
        text = json.dumps(results, indent=1, ensure_ascii=False)
        write_atomically(RESULTS, f"{text}\n".encode())

    failed = []
    for name, commands in read_measurements().items():
        if names and name not in names:
            continue
        try:
            measure(name, commands, origin, results, save)
        except UserError as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr)
    if failed:
        raise UserError(
            f"all must be measured. Received: failures of {', '.join(failed)}"
        )
    print(f"written to {RESULTS.relative_to(ROOT)}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.all",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    known = ", ".join(read_measurements())
    parser.add_argument("names", nargs="*", help=f"of {known} (default: all)")
    names = parser.parse_args(argv).names
    if unknown := {*names} - {*read_measurements()}:
        parser.error(f"NAME must be one of {known}. Received: {', '.join(unknown)}")
    with exit_on_user_error():
        run(names)


if __name__ == "__main__":
    main()
