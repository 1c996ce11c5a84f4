"""Tests of `command_line.cpu_count`, with files of our own."""

import os

import pytest

from command_line import cpu_count


@pytest.mark.parametrize(
    ("membership", "files", "count"),
    [
        ("0::/", {"cpu.max": "250000 100000\n"}, 3),  # A part of one is one.
        ("0::/", {"cpu.max": "10000 100000\n"}, 1),
        ("0::/", {"cpu.max": "max 100000\n"}, 8),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 1"}, 3),
        ("0::/of/the/host", {"cpu.max": "200000 100000\n"}, 2),
        ("4:cpu:/a\n0::/", {"a/cpu.max": "1 1", "cpu.max": "2 1"}, 2),
        ("0::/", {"cpu.max": "what\n"}, 8),
        (None, {}, 8),
    ],
)
def test_a_quota_counts(tmp_path, monkeypatch, membership, files, count):
    if membership:
        (tmp_path / "membership").write_text(membership + "\n")
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(cpu_count, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(cpu_count, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))

    assert cpu_count.count_processors() == count
