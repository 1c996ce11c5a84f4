"""Counts the CPUs that this process may use, by affinity and cgroup quotas.

A container may have a quota of CPU time (`docker run --cpus 2`), which Python
ignores, or a set of CPUs (`--cpuset-cpus`), which it respects. CTranslate2 by
default starts a thread for each CPU of the machine.
"""

import math
import os
import pathlib
from collections.abc import Iterator

CGROUPS = pathlib.Path("/sys/fs/cgroup")
MEMBERSHIP = pathlib.Path("/proc/self/cgroup")


def count_processors() -> int:
    """Returns the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:  # Not on Linux.
        allowed = os.cpu_count()
    return max(1, math.ceil(min([allowed, *cgroup_quotas()])))


def cgroup_quotas() -> Iterator[float]:
    """Yields the quotas of the cgroups of this process, in CPUs."""
    for folder in cgroup_folders():
        try:
            limit, period = read_limit(folder)
            if int(limit) > 0:  # cgroup version 1: -1 means no quota.
                yield int(limit) / int(period)
        except (OSError, ValueError):  # Version 2: `max` means no quota.
            continue


def read_limit(folder: pathlib.Path) -> list[str]:
    """Returns the quota and the period of a cgroup, in microseconds."""
    if (folder / "cpu.max").exists():
        return (folder / "cpu.max").read_text().split()
    return [(folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period")]


def cgroup_folders() -> Iterator[pathlib.Path]:
    """Yields the folders of the cgroups of this process and their parents."""
    text = MEMBERSHIP.read_text() if MEMBERSHIP.exists() else ""
    for line in text.splitlines():
        # `0::/a/b` of version 2; `4:cpu,cpuacct:/a/b` of version 1.
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = CGROUPS / controllers
        # In a container the path may be that of the host; then use the root.
        inner = root / path.strip("/")
        above = (inner, *inner.parents)
        yield from (folder for folder in above if folder.is_relative_to(root))
