"""Runs several systems in processes of their own, interleaved after warm-up.

A process gets its options as one argument, in JSON. It writes a line of JSON
when it is warm, and one for each order, a line that it reads (`answer_orders`).
"""

import contextlib
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable

ROOT = pathlib.Path(__file__).parents[1]


class NotMeasuredError(Exception):
    """The reason why a system is left out."""


class Worker:
    """A process that holds one system and runs it on request.

    `left_out` is the reason why it ended early, or `None`; `answers` are lists
    of what it answered, by order.
    """

    def __init__(self, module: str, options: dict):
        self.process = subprocess.Popen(
            **make_command(module, options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.answers = {}
        self.left_out = self.read().get("left_out")

    def read(self) -> dict:
        """Returns the worker's next line, or the reason why it ended."""
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        return {"left_out": f"ended with code {self.process.wait()}"}

    def run_once(self, order: str) -> None:
        if self.left_out:
            return
        with contextlib.suppress(BrokenPipeError):  # `read` returns the reason.
            self.process.stdin.write(f"{order}\n")
            self.process.stdin.flush()
        answer = self.read()
        self.left_out = answer.get("left_out")
        self.answers.setdefault(order, []).append(answer)


def make_command(module: str, options: dict) -> dict:
    """Returns the arguments of `subprocess.Popen` for a module with options.

    The option `"threads"` is the number of each library, and `"backend"` that
    of Keras, TensorFlow on the CPU by default.
    """
    threads = str(options["threads"])
    backend = options.get("backend", "tensorflow")
    devices = {"CUDA_VISIBLE_DEVICES": "-1"} if backend == "tensorflow" else {}
    return {
        "args": [sys.executable, "-m", module, json.dumps(options, default=str)],
        "cwd": ROOT,
        "env": {
            **os.environ,
            **devices,
            "KERAS_BACKEND": backend,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_ENABLE_ONEDNN_OPTS": "1",  # As `train` sets it.
            "TF_NUM_INTRAOP_THREADS": threads,
            "TF_NUM_INTEROP_THREADS": threads,
            "OMP_NUM_THREADS": threads,
            # The processes share a GPU.
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        },
    }


def run_interleaved(
    title: str,
    module: str,
    systems: dict[str, dict],
    orders: Iterable[str],
    repetitions: int,
) -> dict[str, dict[str, list[dict]]]:
    """Starts all systems, and runs them in alternation.

    Args:
        title: Name of the measurement, for the messages.
        module: Module of the processes.
        systems: The options of a process, by the name of each system.
        orders: Lines that each system gets in every repetition.
        repetitions: Int, how often.

    Returns:
        What each system answered, by system and by order; without the systems
        that are left out.
    """
    workers = {}
    try:
        for system, options in systems.items():
            print(f"{title}: {system} warms up", file=sys.stderr)
            workers[system] = Worker(module, options)
        for repetition in range(repetitions):
            print(f"{title}: run {repetition + 1} of {repetitions}", file=sys.stderr)
            for order in orders:
                # Alternate, so that no system always follows the same one.
                for worker in [*workers.values()][:: -1 if repetition % 2 else 1]:
                    worker.run_once(order)
    finally:
        for worker in workers.values():
            worker.process.communicate()
    for system, worker in workers.items():
        if worker.left_out:
            print(f"\n{title}: {system} is left out: {worker.left_out}")
    return {name: w.answers for name, w in workers.items() if not w.left_out}


def answer_orders(start: Callable[[dict], Callable[[str], dict]]) -> None:
    """Runs one system on request, in a process that `Worker` starts.

    `start` returns, of the options, a function from an order to the answer.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # Libraries print, too.
            answer = start(json.loads(sys.argv[1]))
            write({})
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
