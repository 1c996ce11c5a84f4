"""Prints `TF_CONFIG` of a worker: python examples/tf_config.py INDEX HOST ..."""

import json
import sys

index, *hosts = sys.argv[1:]
cluster = {"worker": [f"{host}:12345" for host in hosts]}
task = {"type": "worker", "index": int(index)}
print(json.dumps({"cluster": cluster, "task": task}))
