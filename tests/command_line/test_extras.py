"""The extras of `setup.cfg` install what their commands import."""

import configparser
import importlib.metadata
import subprocess
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Imports modules where the packages of the first argument are not installed.
PROGRAM = """
import importlib, sys

class Blocker:
    blocked = set(sys.argv[1].split(","))

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.blocked:
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, Blocker())
for name in sys.argv[2:]:
    importlib.import_module(name)
"""


def read_requirements(extra: str) -> list[Requirement]:
    config = configparser.ConfigParser()
    config.read("setup.cfg")
    lines = [
        *config["options"]["install_requires"].splitlines(),
        *config["options.extras_require"][extra].splitlines(),
    ]
    return [Requirement(line) for line in lines if line and line[0] != "#"]


def find_distributions(requirements: list[Requirement]) -> set[str]:
    """Returns what pip installs for the requirements."""
    found, waiting = set(), list(requirements)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found:
            continue
        found.add(name)
        extras = requirement.extras or {""}
        for line in importlib.metadata.requires(name) or ():
            needed = Requirement(line)
            marker = needed.marker
            if marker is None or any(
                marker.evaluate({"extra": extra}) for extra in extras
            ):
                waiting.append(needed)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "modules"),
    [
        ("train", ["train.__main__", "export.__main__", "translate.evaluate"]),
        ("web", ["serve.__main__"]),
        ("convert", ["convert.__main__"]),
    ],
)
def test_an_extra_installs_what_its_commands_import(extra, modules):
    installed = find_distributions(read_requirements(extra))
    installed |= {"keras-transformer", "litert-translator"}
    packages = importlib.metadata.packages_distributions()
    blocked = [
        package
        for package, names in packages.items()
        if not installed & {canonicalize_name(name) for name in names}
    ]
    assert "hypothesis" in blocked
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(blocked), *modules],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
