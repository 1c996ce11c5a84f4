"""Runs several systems in processes of their own, interleaved after warm-up.

A process gets its options as one argument, in JSON. It writes a line of JSON
when it is warm, and one for each line that it reads (`answer_orders`).
"""

import contextlib
import importlib.metadata
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = (
    *("tensorflow", "keras", "ctranslate2", "ai-edge-litert", "torch"),
    *("transformers", "keras-hub"),
)
# Features of a processor that decide the speed of matrix products.
CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")


class NotMeasuredError(Exception):
    """The reason why a system is left out."""


class Worker:
    """A process that holds one system and runs it on request.

    `first` is what it wrote at first, or `"left_out"` with the reason why it
    writes no more; `answers` are what it wrote since.
    """

    def __init__(self, system: str, module: str, options: dict):
        self.system = system
        self.process = subprocess.Popen(
            **make_command(module, options),
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
        with contextlib.suppress(BrokenPipeError):  # `read` returns the reason.
            self.process.stdin.write(f"{order}\n")
            self.process.stdin.flush()
        answer = self.read()
        if "left_out" in answer:
            self.first = answer
        else:
            self.answers.append(answer)

    @property
    def left_out(self) -> str | None:
        return self.first.get("left_out")


def make_command(module: str, options: dict) -> dict:
    """Returns the arguments of `subprocess.Popen` for a module with options.

    The option `"threads"` is the number of each library.
    """
    threads = str(options["threads"])
    return {
        "args": [sys.executable, "-m", module, json.dumps(options, default=str)],
        "cwd": ROOT,
        "env": {
            **os.environ,
            "KERAS_BACKEND": "tensorflow",
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_ENABLE_ONEDNN_OPTS": "1",  # As `train` sets it.
            "TF_NUM_INTRAOP_THREADS": threads,
            "TF_NUM_INTEROP_THREADS": threads,
            "OMP_NUM_THREADS": threads,
        },
    }


def run_interleaved(
    title: str,
    module: str,
    systems: dict[str, dict],
    orders: Iterable[str],
    repetitions: int,
) -> list[Worker]:
    """Starts all systems, and runs them in alternation.

    Args:
        title: Name of the measurement, for the messages.
        module: Module of the processes.
        systems: The options of a process, by the name of each system.
        orders: Lines that each system gets in every repetition.
        repetitions: Int, how often.

    Returns:
        The workers of the systems that were measured; they have ended.
    """
    workers = []
    try:
        for system, options in systems.items():
            print(f"{title}: {system} warms up", file=sys.stderr)
            workers.append(Worker(system, module, options))
        for repetition in range(repetitions):
            print(f"{title}: run {repetition + 1} of {repetitions}", file=sys.stderr)
            for order in orders:
                # Alternate, so that no system always follows the same one.
                for worker in workers[:: -1 if repetition % 2 else 1]:
                    if not worker.left_out:
                        worker.run_once(order)
    finally:
        for worker in workers:
            worker.process.communicate()
    for worker in workers:
        if worker.left_out:
            print(f"\n{title}: {worker.system} is left out: {worker.left_out}")
    return [worker for worker in workers if not worker.left_out]


def answer_orders(start: Callable[[dict], tuple[dict, Callable[[str], dict]]]) -> None:
    """Runs one system on request, in a process that `Worker` starts.

    `start` returns, of the options, what the process writes first, and a
    function from an order to the answer.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # Libraries print, too.
            first, answer = start(json.loads(sys.argv[1]))
            write(first)
            for line in sys.stdin:
                write(answer(line.rstrip("\n")))
    except (ImportError, NotMeasuredError) as error:
        write({"left_out": str(error)})


def write(values: dict) -> None:
    print(json.dumps(values), file=sys.__stdout__, flush=True)


def peak_memory() -> int:
    """Returns the most bytes of memory that this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def format_spread(values: list[float], form: str) -> str:
    """Returns the median, with the minimum and the maximum in brackets."""
    middle, low, high = (
        format(value, form)
        for value in (statistics.median(values), min(values), max(values))
    )
    return f"{middle} ({low} to {high})"


def describe_machine() -> dict:
    """Returns processor, cores, the flags that matter, and versions."""
    flags = cpu_field("flags").split()
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "processor": cpu_field("model name") or platform.processor(),
        "cores": os.cpu_count(),
        "flags": [flag for flag in CPU_FLAGS if flag in flags],
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


def write_results(path: pathlib.Path | None, args, rows: list[dict]) -> None:
    """Writes the rows with machine and arguments, if a file is asked for."""
    if path:
        results = {"machine": describe_machine(), "arguments": vars(args), "rows": rows}
        path.write_text(json.dumps(results, indent=2, default=str) + "\n")
