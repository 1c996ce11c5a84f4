"""Prints versions and devices, for a bug report."""

import importlib.metadata
import os
import pathlib
import platform

import keras

from keras_transformer import __version__

PACKAGES = (
    "keras",
    "tensorflow",
    "tensorflow-text",
    "jax",
    "torch",
    "numpy",
    "sentencepiece",
)


def version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def describe() -> str:
    """Returns versions and devices, one a line."""
    folder = pathlib.Path(__file__).parent
    backend, devices = keras.backend.backend(), ["unknown to Keras"]
    if backend != "torch":  # Keras lists none of it.
        devices = keras.distribution.list_devices()
    rows = {
        "keras_transformer": f"{__version__} in {folder}",
        **{package: version_of(package) for package in PACKAGES},
        "backend": backend,
        "devices": ", ".join(devices),
        "python": f"{platform.python_version()} on {platform.platform()}",
        "processors": f"{os.cpu_count()} of {platform.machine()}",
    }
    return "\n".join(f"{name:18}{value}" for name, value in rows.items())


if __name__ == "__main__":
    print(describe())
