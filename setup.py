"""Adds the commands to a wheel, in one package without a generic name.

`train`, `export` and the others are packages of a clone. In site-packages
they lie in `keras_transformer_commands`, where `command_line/launcher.py` runs
them.
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
INCLUDED = [name for command in COMMANDS for name in (command, f"{command}.*")]

setup(
    packages=[
        *find_packages(include=["keras_transformer", "keras_transformer.*"]),
        *(f"{PREFIX}.{package}" for package in find_packages(include=INCLUDED)),
    ],
    package_dir={f"{PREFIX}.{command}": command for command in COMMANDS},
    package_data={
        "": ["*.css", "*.html", "*.js", "*.md", "*.toml", "page/*", "server_files/*"],
        "keras_transformer": ["py.typed"],
    },
)
