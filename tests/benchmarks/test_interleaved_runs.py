"""Tests of `benchmarks.interleaved_runs`."""

import pytest

from benchmarks import interleaved_runs
from benchmarks.interleaved_runs import Threads, choose_threads, list_threads


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    monkeypatch.setattr(interleaved_runs, "count_processors", lambda: 4)


def test_settings_share_the_cores_between_workers_and_threads():
    assert list_threads() == [(1, 1), (1, 2), (1, 4)]
    assert list_threads(3) == [(1, 1), (1, 2), (1, 4), (2, 2)]
    assert list_threads(32, has_threads=False) == [(1, 1), (2, 1), (4, 1)]


def test_the_fastest_setting_is_chosen(monkeypatch):
    seconds = {Threads(1, 1): [9, 2, 3], Threads(1, 2): [4, 5, 4], Threads(1, 4): []}

    class Worker:
        def __init__(self, module, options):
            runs = seconds[options["threads"]]
            self.left_out = None if runs else "ended"
            self.answers = {"probe": [{"seconds": [run / 2] * 2} for run in runs]}
            self.process = self
            assert options["size"] == "tiny"

        def run_once(self, order):
            assert order == "probe"

        def communicate(self):
            pass

    monkeypatch.setattr(interleaved_runs, "Worker", Worker)

    chosen = choose_threads("module", {"size": "tiny"}, list(seconds), "probe")

    assert chosen == (1, 1)
