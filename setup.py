"""Adds the commands to a wheel, in one package without a generic name.

`train`, `export` and the others are packages of a clone. In site-packages
they lie in `keras_transformer_commands`, whose `keras-transformer` runs them.
"""

from setuptools import find_packages, setup

PREFIX = "keras_transformer_commands"
COMMANDS = (
    "command_line",
    "convert",
    "demo_corpus",
    "documents",
    "export",
    "litert_translator",
    "serve",
    "text_processing",
    "train",
    "translate",
)

setup(
    packages=[
        *find_packages(include=["keras_transformer", "keras_transformer.*"]),
        PREFIX,
        *(
            f"{PREFIX}.{package}"
            for command in COMMANDS
            for package in find_packages(include=[command, f"{command}.*"])
        ),
    ],
    package_dir={
        PREFIX: "command_line/launcher",
        **{f"{PREFIX}.{command}": command for command in COMMANDS},
    },
    package_data={
        f"{PREFIX}.export.litert": ["page/*"],
        f"{PREFIX}.translate.report": ["explain.*"],
        f"{PREFIX}.serve": ["page/*"],
    },
)
