"""Prints `TF_CONFIG` for a worker, given its index and all host names.

The second of two workers has

    python examples/tf_config.py 1 first.example.org second.example.org
"""

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
