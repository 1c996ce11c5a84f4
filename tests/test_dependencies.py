"""Imports go one way: train and export use keras_transformer, never back."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
FORBIDDEN = {
    "keras_transformer": {"train", "export", "tests", "tensorflow"},
    "train": {"export", "tests"},
    "export": {"train", "tests"},
}
# String ops and graphs of TensorFlow; the rest runs on any backend.
ALLOWED = {
    (module, "tensorflow")
    for module in (
        "tokenizer.py",
        "decoding.py",
        "beam_trace.py",
        "translation.py",
    )
}


def imported_packages(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_go_one_way(package):
    for path in (ROOT / package).rglob("*.py"):
        for name in set(imported_packages(path)) & FORBIDDEN[package]:
            assert (path.name, name) in ALLOWED, f"{path} imports {name}"
