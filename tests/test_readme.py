"""The README's Python runs as it stands, and its commands exist."""

import pathlib
import re
import shlex

import numpy as np

import export.__main__
import export.check
import export.evaluate
import export.explain
import export.translate
import tests.model_server
import train.__main__
import train.checkpoints
import train.reproduce

README = pathlib.Path(__file__).parent.parent / "README.md"


def test_python_blocks_run(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    names = {}
    for block in blocks:
        exec(block, names)
    ids = np.array([[7, 5, 0], [3, 9, 2]])

    assert len(blocks) == 3
    np.testing.assert_allclose(np.sum(names["scores"][1], 3), 1, rtol=1e-5)
    assert names["classifier"](ids).shape == (2, 2)
    names["model"].run_eagerly = True  # Tracing takes longer than one step.
    names["model"].train_on_batch({"source_ids": ids, "target_ids": ids}, ids)


def test_commands_have_the_options_that_it_names():
    commands = {
        "train": train.__main__,
        "train.checkpoints": train.checkpoints,
        "train.reproduce": train.reproduce,
        "export": export.__main__,
        "export.check": export.check,
        "export.translate": export.translate,
        "export.evaluate": export.evaluate,
        "export.explain": export.explain,
        "tests.model_server": tests.model_server,
    }
    text = README.read_text().replace("\\\n", " ")
    found = re.findall(r"\.venv/bin/python -m (\S+)(.*)", text)

    assert {name for name, _ in found} == set(commands)
    for name, rest in found:
        arguments = shlex.split(re.sub(r"[<>].*", "", rest))
        commands[name].parse_arguments(arguments)
