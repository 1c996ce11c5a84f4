"""Runs several systems in processes of their own, interleaved after warm-up."""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).parents[2]


class Worker:
    """A process that holds one system and runs it on request.

    Args:
        system: Name of the system.
        command: A module and its arguments. It writes a line of JSON when it
            is warm, and one for each line that it reads; `"left_out"` in one
            says why there will be no more.
        threads: Int, threads of each library.

    Attributes:
        first: Dict, what it wrote at first.
        answers: List of dicts, what it wrote since.
    """

    def __init__(self, system: str, command: list[str], threads: int):
        self.system = system
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=make_environment(threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first = self.read()
        self.answers = []

    def read(self) -> dict:
        """Returns the worker's next line, or the reason why it ended."""
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        return {"left_out": f"ended with code {self.process.wait()}"}

    def run_once(self, order: str) -> None:
        try:
            self.process.stdin.write(f"{order}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # It has ended; `read` returns the reason.
        answer = self.read()
        if "left_out" in answer:
            self.first = answer
        else:
            self.answers.append(answer)

    def close(self) -> None:
        self.process.communicate()

    @property
    def left_out(self) -> str | None:
        return self.first.get("left_out")


def make_environment(threads: int) -> dict[str, str]:
    """Returns the environment in which all workers run."""
    return {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "1",  # As `train` sets it.
        "TF_NUM_INTRAOP_THREADS": str(threads),
        "TF_NUM_INTEROP_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
    }


def run_interleaved(
    title: str,
    commands: dict[str, list[str]],
    orders: Iterable[str],
    repetitions: int,
    threads: int,
) -> list[Worker]:
    """Starts all systems, and runs them in alternation.

    Args:
        title: Name of the measurement, for the messages.
        commands: Dict from a system to its command; see `Worker`.
        orders: Lines that each system gets in every repetition.
        repetitions: Int, how often.
        threads: Int, threads of each library.

    Returns:
        The workers, with what they wrote; they have ended.
    """
    workers = []
    try:
        for system, command in commands.items():
            print(f"{title}: {system} warms up", file=sys.stderr)
            workers.append(Worker(system, command, threads))
        for repetition in range(repetitions):
            print(
                f"{title}: repetition {repetition + 1} of {repetitions}",
                file=sys.stderr,
            )
            for order in orders:
                # Alternate the order, so that no system always follows the same
                # one.
                for worker in workers[:: -1 if repetition % 2 else 1]:
                    if not worker.left_out:
                        worker.run_once(order)
    finally:
        for worker in workers:
            worker.close()
    return workers


def list_failures(workers: list[Worker], common: dict) -> list[dict]:
    """Returns a row with the reason for each system that failed."""
    return [
        {**common, "system": worker.system, "reason": worker.left_out}
        for worker in workers
        if worker.left_out
    ]


def write_json(path: pathlib.Path, args, packages, **results) -> None:
    """Writes results with the machine, the versions and the arguments."""
    result = {
        "machine": describe_machine(packages),
        "arguments": {
            name: str(value) if isinstance(value, pathlib.Path) else value
            for name, value in vars(args).items()
        },
        **results,
    }
    path.write_text(json.dumps(result, indent=2) + "\n")


def describe_machine(packages: Iterable[str]) -> dict:
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "date": datetime.date.today().isoformat(),
        "processor": cpu_field("model name") or platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": versions,
    }


def cpu_field(name: str) -> str:
    """Returns a field of the first processor, or nothing."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
