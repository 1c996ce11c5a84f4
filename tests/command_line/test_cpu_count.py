"""Tests of `command_line.cpu_count`, with files of our own."""

import os

import pytest

from command_line import cpu_count

V1 = {"cpu.cfs_quota_us": "150000\n", "cpu.cfs_period_us": "100000\n"}


@pytest.mark.parametrize(
    ("membership", "files", "count"),
    [
        ("0::/", {"cpu.max": "250000 100000\n"}, 3),  # A part of one is one.
        ("0::/", {"cpu.max": "10000 100000\n"}, 1),
        ("0::/", {"cpu.max": "max 100000\n"}, 8),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 1"}, 3),
        ("0::/of/the/host", {"cpu.max": "200000 100000\n"}, 2),
        (
            "5:memory:/a\n4:cpu,cpuacct:/a\n0::/",
            {f"cpu,cpuacct/a/{name}": text for name, text in V1.items()},
            2,
        ),
        (
            "4:cpu:/",
            {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
            8,
        ),
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
