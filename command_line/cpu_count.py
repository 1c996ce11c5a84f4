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
    """Yields the quotas of the cgroup of this process and its parents, in CPUs."""
    text = MEMBERSHIP.read_text() if MEMBERSHIP.exists() else ""
    # `0::/a/b`: version 2 of cgroups has one hierarchy.
    paths = [line[3:] for line in text.splitlines() if line.startswith("0::")]
    for path in paths:
        # In a container the path may be that of the host; then use the root.
        inner = CGROUPS / path.strip("/")
        for folder in (inner, *inner.parents):
            try:
                limit, period = (folder / "cpu.max").read_text().split()
                yield int(limit) / int(period)
            except (OSError, ValueError):  # `max` means no quota.
                continue
