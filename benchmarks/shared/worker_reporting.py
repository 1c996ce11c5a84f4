"""Reports results and peak memory of a benchmark worker to its parent."""

import json
import resource
import sys


def peak_memory() -> int:
    """Returns the most bytes of memory that this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def report(values: dict) -> None:
    """Sends values to the parent process, apart from what libraries print."""
    print(json.dumps(values), file=sys.__stdout__, flush=True)
