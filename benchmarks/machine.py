"""Describes the machine: processor, cores, versions."""

import contextlib
import importlib.metadata
import os
import pathlib
import platform

PACKAGES = (
    *("tensorflow", "keras", "ctranslate2", "ai-edge-litert", "torch"),
    *("transformers", "keras-hub"),
)
# Features of a processor that decide the speed of matrix products.
CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")


def describe_machine() -> dict:
    """Returns processor, cores, the flags that matter, and versions."""
    flags = cpu_field("flags").split()
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "processor": cpu_field("model name") or platform.processor(),
        "cores": os.cpu_count(),
        "flags": [flag for flag in CPU_FLAGS if flag in flags],
        "python": platform.python_version(),
        "packages": versions,
    }


def cpu_field(name: str) -> str:
    """Returns a field of the first processor, or nothing."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return ""
