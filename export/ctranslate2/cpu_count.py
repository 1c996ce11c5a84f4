"""How many processors this process may use: fewer than the machine has.

A container has a quota of their time (`docker run --cpus 2`), which Python
does not ask for, or a set of them (`--cpuset-cpus`), which it does. CTranslate2
would start a thread for each of the machine's.
"""

import math
import os
import pathlib
from collections.abc import Iterator

CGROUPS = pathlib.Path("/sys/fs/cgroup")
MEMBERSHIP = pathlib.Path("/proc/self/cgroup")


def count_processors() -> int:
    """Returns the number of processors whose time this process may use."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:  # No Linux.
        allowed = os.cpu_count()
    return max(1, math.ceil(min([allowed, *quotas()])))


def quotas() -> Iterator[float]:
    """Yields the quotas of the groups of this process, in processors."""
    for folder in groups():
        try:
            limit, period = read_limit(folder)
            if int(limit) > 0:  # Version 1 writes -1 for none.
                yield int(limit) / int(period)
        except (OSError, ValueError):  # Version 2 writes `max` for none.
            continue


def read_limit(folder: pathlib.Path) -> list[str]:
    """Returns microseconds of processors, and of the time that they are for."""
    if (folder / "cpu.max").exists():
        return (folder / "cpu.max").read_text().split()
    return [
        (folder / f"cpu.cfs_{name}_us").read_text()
        for name in ("quota", "period")
    ]


def groups() -> Iterator[pathlib.Path]:
    """Yields the folders of the groups: a quota holds for all within."""
    try:
        lines = MEMBERSHIP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        # `0::/a/b` of version 2; `4:cpu,cpuacct:/a/b` of version 1.
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = CGROUPS / controllers
        # In a container the path may be the host's; its own is the root.
        inner = root / path.strip("/")
        above = (inner, *inner.parents)
        yield from (folder for folder in above if folder.is_relative_to(root))
