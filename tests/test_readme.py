"""The README's Python runs as it stands; commands have their options."""

import importlib
import pathlib
import re
import shlex

import numpy as np
import pytest

from tests.helpers.model_server import serve_grpc
from tests.helpers.servable import Servable

ROOT = pathlib.Path(__file__).parent.parent
README = ROOT / "README.md"


def python_blocks():
    """Returns the blocks about an export, and those about the layers."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    first = next(i for i, b in enumerate(blocks) if "import keras\n" in b)
    return blocks[:first], blocks[first:]


def test_blocks_about_an_export_run(export_dir, monkeypatch, tmp_path, capsys):
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports/mine").symlink_to(export_dir)
    monkeypatch.chdir(tmp_path)
    (load, _, ask), _ = python_blocks()
    names = {}

    exec(load, names)
    with serve_grpc(Servable(export_dir, "mine")) as address:
        exec(ask.replace("localhost:8500", address), names)

    assert set(names["outputs"]) == {"translation", "score", "truncated"}
    assert capsys.readouterr().out.startswith("[b'")


def test_the_block_about_trees_runs(capsys):
    (_, restore, _), _ = python_blocks()
    names = {}

    exec(restore, names)

    expected = re.search(r"print\(tree\)  # (.*)", restore)[1]
    assert capsys.readouterr().out == f"{expected}\n"
    assert not names["faults"]


def test_blocks_about_layers_run(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    _, blocks = python_blocks()
    names = {}
    for block in blocks:
        exec(block, names)
    ids = np.array([[7, 5, 0], [3, 9, 2]])

    assert len(blocks) == 3
    np.testing.assert_allclose(np.sum(names["scores"][1], 3), 1, rtol=1e-5)
    assert names["classifier"](ids).shape == (2, 2)
    names["model"].run_eagerly = True  # Tracing takes longer than one step.
    names["model"].train_on_batch({"source_ids": ids, "target_ids": ids}, ids)


@pytest.mark.parametrize(
    "path",
    [README, ROOT / "benchmarks/README.md", *(ROOT / "docs").glob("*.md")],
)
def test_commands_have_the_options_that_it_names(path):
    text = path.read_text("utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)

    for name, rest in re.findall(r"python -m (\S+)(.*)", "\n".join(blocks)):
        arguments = shlex.split(re.sub(r"[<>|\[].*|…|'$", "", rest))
        module = importlib.import_module(name)
        if hasattr(module, "__path__"):  # A package.
            module = importlib.import_module(f"{name}.__main__")
        module.parse_arguments(arguments)
