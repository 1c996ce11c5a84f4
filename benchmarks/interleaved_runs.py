"""Runs several systems in processes of their own, interleaved after warm-up.

A process gets its options as one argument, in JSON. It writes a line of JSON
when it is warm, and one for each order, a line that it reads (`answer_orders`).

Each system is measured with the number of threads that suits it: short runs of
all its settings choose one.
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
from typing import NamedTuple

import numpy as np

from command_line.cpu_count import count_processors

ROOT = pathlib.Path(__file__).parents[1]
PROBES = 7  # Short runs of a setting; their median counts.


class Threads(NamedTuple):
    """How a system uses the processor.

    `workers` compute parts of a batch at the same time, each operation of theirs
    with so many `threads`.
    """

    workers: int = 1
    threads: int = 1

    def __str__(self) -> str:
        return f"{self.workers} × {self.threads}"


def list_threads(batch_size: int = 1, has_threads: bool = True) -> list[Threads]:
    """Returns the settings to try: one thread, all cores, and what lies between.

    Without `has_threads` the system has one thread for an operation.
    """
    cores = count_processors()
    divisors = [n for n in range(1, cores + 1) if cores % n == 0]
    settings = [Threads(1, n) for n in divisors if has_threads or n == 1]
    return settings + [
        Threads(n, cores // n if has_threads else 1)
        for n in divisors
        if 1 < n <= batch_size
    ]


class Measured(NamedTuple):
    """What a system answered to each order, and its setting."""

    threads: Threads
    answers: dict[str, list[dict]]


class NotMeasuredError(Exception):
    """The reason why a system is left out."""


class Worker:
    """A process that holds one system and runs it on request.

    `left_out` is the reason why it ended early, or `None`; `answers` are lists
    of what it answered, by order.
    """

    def __init__(self, module: str, options: dict):
        self.process = subprocess.Popen(
            **make_popen_arguments(module, options),
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


def make_popen_arguments(module: str, options: dict) -> dict:
    """Returns the arguments of `subprocess.Popen` for a module with options.

    The option `"threads"` is the `Threads` of each library.
    """
    workers, threads = options["threads"]
    return {
        "args": [sys.executable, "-m", module, json.dumps(options, default=str)],
        "cwd": ROOT,
        "env": {
            **os.environ,
            "CUDA_VISIBLE_DEVICES": "-1",
            "KERAS_BACKEND": "tensorflow",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_ENABLE_ONEDNN_OPTS": "1",  # As `train` sets it.
            "TF_NUM_INTRAOP_THREADS": f"{threads}",
            "TF_NUM_INTEROP_THREADS": f"{workers * threads}",
            "OMP_NUM_THREADS": f"{threads}",
        },
    }


def run_interleaved(
    title: str,
    module: str,
    systems: dict[str, tuple[dict, list[Threads]]],
    probe: str,
    orders: Iterable[str],
    repetitions: int,
) -> dict[str, Measured]:
    """Chooses the threads of each system, then runs all in alternation.

    `systems` are the options of a process of the module, and the settings to try, by
    the name of each system; `probe` is the order of the short runs, whose answers
    have `"seconds"`; each system gets the orders in every repetition. What was left
    out is not in the result.
    """
    chosen = {}
    for system, (options, settings) in systems.items():
        chosen[system] = choose_threads(module, options, settings, probe)
        print(f"{title}: {system} runs with {chosen[system]}", file=sys.stderr)
    workers = interleave(
        module,
        {name: {**systems[name][0], "threads": chosen[name]} for name in systems},
        orders,
        repetitions,
    )
    for system, worker in workers.items():
        if worker.left_out:
            print(f"\n{title}: {system} is left out: {worker.left_out}")
    return {
        name: Measured(chosen[name], worker.answers)
        for name, worker in workers.items()
        if not worker.left_out
    }


def choose_threads(
    module: str, options: dict, settings: list[Threads], probe: str
) -> Threads:
    """Returns the fastest setting, or the first if none can be measured."""
    if len(settings) == 1:
        return settings[0]
    systems = {threads: {**options, "threads": threads} for threads in settings}
    workers = interleave(module, systems, [probe], PROBES)
    seconds = {
        threads: np.median([np.sum(run["seconds"]) for run in worker.answers[probe]])
        for threads, worker in workers.items()
        if not worker.left_out
    }
    return min(seconds, key=seconds.get, default=settings[0])


def interleave(
    module: str, systems: dict, orders: Iterable[str], repetitions: int
) -> dict:
    """Starts a `Worker` for the options of each system, and runs all in turn."""
    workers = {}
    try:
        for system, options in systems.items():
            workers[system] = Worker(module, options)
        for repetition in range(repetitions):
            for order in orders:
                # Alternate, so that no system always follows the same one.
                for worker in [*workers.values()][:: -1 if repetition % 2 else 1]:
                    worker.run_once(order)
    finally:
        for worker in workers.values():
            worker.process.communicate()
    return workers


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
