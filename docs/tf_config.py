"""Prints `TF_CONFIG` for a worker: its index, then the names of all hosts."""

import json
import sys

PORT = 12345

index, *hosts = sys.argv[1:]
print(
    json.dumps(
        {
            "cluster": {"worker": [f"{host}:{PORT}" for host in hosts]},
            "task": {"type": "worker", "index": int(index)},
        }
    )
)
