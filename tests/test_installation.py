"""The extras of `setup.cfg` name what the commands import; nothing is imported."""

import ast
import configparser
import importlib.metadata
import pathlib
import re
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from command_line.launcher import COMMANDS, DISTRIBUTION, EXTRAS

ROOT = pathlib.Path(__file__).parent.parent
DISTRIBUTIONS = importlib.metadata.packages_distributions()
# Where imports begin. Commands without an extra of their own have `train`.
MODULES = {
    "": ["keras_transformer.*"],
    "ctranslate2": ["export.ctranslate2.*"],
    "docs": ["docs.*"],
    "litert": ["litert_translator.*"],
}
for command in COMMANDS.values():
    MODULES.setdefault(EXTRAS.get(command, "train"), []).append(f"{command}.__main__")
for page in ROOT.glob("docs/**/*.md"):
    MODULES["docs"] += re.findall(r"^{{ options (\S+) }}", page.read_text(), re.M)
# Imported where a user asks for them; who lacks one gets one line.
OPTIONAL = {"ai-edge-litert", "ctranslate2", "datasets", "jax", "torch"}
EXCEPTIONS = {
    "": {"tensorflow", "tensorflow-text"},
    "convert": {"sacrebleu"},  # Only `train` and `translate` compute BLEU.
    "ctranslate2": {
        "tensorflow",
        "tensorflow-text",
    },  # It stands beside `train` or `web`.
    "web": {"sentencepiece"},  # Of the formats litert and ctranslate2.
}
# Distributions whose interface shows another's.
BRING = {
    "fastapi": {"pydantic", "pydantic-core", "starlette"},
    "mkdocstrings": {"griffe", "griffelib"},  # The former where none is installed.
    "tensorflow": {"protobuf"},
    "tensorflow-serving-api": {"grpcio"},
}


def read_extra(extra: str) -> set[str]:
    """Returns the distributions that `setup.cfg` names for an extra, `""` for none."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = {"": "", **config["options.extras_require"]}
    found = set()
    for line in (config["options"]["install_requires"] + extras[extra]).splitlines():
        if line and line[0] != "#":
            requirement = Requirement(line)
            name = canonicalize_name(requirement.name)
            found |= {name, *BRING.get(name, ())}
            if name == DISTRIBUTION:
                found = found.union(*map(read_extra, requirement.extras))
    return found


def find_files(module: str) -> list[pathlib.Path]:
    """Returns the files that an import executes, `*` for all of a package."""
    path, files = ROOT, []
    for name in module.split("."):
        files += path.rglob("*.py") if name == "*" else []
        path /= name
        files += [path / "__init__.py", path.with_suffix(".py")]
    return [file for file in files if file.exists()]


def find_imports(modules: list[str]) -> dict[str, pathlib.Path]:
    """Returns the top-level modules of others, and a file that imports each."""
    found, seen, waiting = {}, set(), list(modules)
    while waiting:
        for file in set(find_files(waiting.pop())) - seen:
            seen.add(file)
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    prefix = f"{node.module}." if hasattr(node, "module") else ""
                    names = [prefix + alias.name for alias in node.names]
                    waiting += names
                    found |= {name.partition(".")[0]: file for name in names}
    ours = {path.name for path in ROOT.iterdir()}
    return {n: found[n] for n in found.keys() - ours - sys.stdlib_module_names}


@pytest.mark.parametrize("extra", MODULES)
def test_an_extra_installs_what_its_commands_import(extra):
    allowed = read_extra(extra) | OPTIONAL | EXCEPTIONS.get(extra, set())
    for module, file in find_imports(MODULES[extra]).items():
        # What is not installed here has the name of its module.
        names = map(canonicalize_name, DISTRIBUTIONS.get(module, [module]))
        assert allowed & set(names), f"{file} imports {module}"
