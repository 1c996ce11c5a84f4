"""README and guide: their Python runs as it stands, their commands parse."""

import argparse
import copy
import html
import importlib.util
import pathlib
import re
import shlex

import numpy as np
import pytest

from tests.helpers.fake_model_server import serve_grpc

ROOT = pathlib.Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks/README.md",
    *sorted(DOCS.rglob("*.md")),
]


def python_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.S)


def test_blocks_about_an_export_run(
    export_dir, servable, monkeypatch, tmp_path, capsys
):
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports/mine").symlink_to(export_dir)
    monkeypatch.chdir(tmp_path)
    load, ask = python_blocks(DOCS / "how_to/serving.md")
    names = {}

    exec(load, names)
    mine = copy.copy(servable)
    mine.name = "mine"
    with serve_grpc(mine) as address:
        exec(ask.replace("localhost:8500", address), names)

    assert set(names["outputs"]) == {"translation", "score", "truncated"}
    assert capsys.readouterr().out.startswith("[b'")
    (translate_html,) = python_blocks(DOCS / "how_to/documents.md")
    exec(translate_html, {})
    assert re.fullmatch("<p>.*<b>.*</b>.*</p>\n", capsys.readouterr().out)
    assert python_blocks(README)[1] == load.replace("mine", "multi30k")


@pytest.mark.slow
def test_the_block_about_a_run_folder_runs(run_dir, monkeypatch, tmp_path, capsys):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/en-pt").symlink_to(run_dir)
    monkeypatch.chdir(tmp_path)

    exec(python_blocks(README)[0], {})

    assert capsys.readouterr().out.endswith("\n")


@pytest.mark.parametrize("page", [README, DOCS / "tutorials/layers.md"])
def test_blocks_about_layers_run(page, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {}
    for block in python_blocks(page):
        if "tensorflow_text" not in block and "pretrained" not in block:
            exec(block, names)
    ids = np.array([[7, 5, 0], [3, 9, 2]])

    if "scores" in names:
        np.testing.assert_allclose(np.sum(names["scores"][1], 3), 1, rtol=1e-5)
    assert names["classifier"](ids).shape == (2, 2)
    names["model"].run_eagerly = True  # Tracing takes longer than one step.
    names["model"].train_on_batch({"source_ids": ids, "target_ids": ids}, ids)


def test_badges_are_true():
    badges = (DOCS / "assets/badges.svg").read_text("utf-8")
    setup = (ROOT / "setup.cfg").read_text("utf-8")
    texts = [
        html.unescape(text) for text in re.findall("<text.*?>(.*?)</text>", badges)
    ]
    found = dict(zip(texts[::2], texts[1::2], strict=True))

    oldest, newest = re.search(
        r"\n    tensorflow>=([\d.]+),<([\d.]+)\n", setup
    ).groups()
    assert found == {
        "License": re.search("\nlicense = (.*)", setup)[1],
        "Python": " | ".join(re.findall(r"Python :: (3\.\d+)", setup)),
        "Keras": "≥ " + re.search(r"\n    keras>=(.*)", setup)[1],
        "TensorFlow": f"≥ {oldest}, < {newest}",
    }


class Parsed(Exception):  # noqa: N818  It is no error.
    pass


@pytest.fixture
def parse_alone(monkeypatch):
    """Commands end where they have parsed their arguments, written out."""
    parser = argparse.ArgumentParser
    parse_known = parser.parse_known_args

    def end(self, *args, **kwargs):
        self.allow_abbrev = False
        _, left = parse_known(self, *args, **kwargs)
        raise Parsed(left)

    def end_with_all(self, *args, **kwargs):
        with pytest.raises(Parsed) as parsed:
            end(self, *args, **kwargs)
        if parsed.value.args[0]:
            self.error(f"unknown: {parsed.value}")
        raise parsed.value

    # An option that `parse_known_args` does not know is no error of its own.
    monkeypatch.setattr(parser, "parse_known_args", end)
    monkeypatch.setattr(parser, "parse_args", end_with_all)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.usefixtures("parse_alone")
def test_commands_have_the_options_that_it_names(page):
    text = page.read_text("utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M)

    for name, rest in re.findall(r"python -m (\S+)(.*)", "\n".join(blocks)):
        arguments = shlex.split(re.sub(r"[<>|\[#].*|…|'$", "", rest))
        with pytest.raises(Parsed):
            importlib.import_module(command_module(name)).main(arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_modules_and_files_that_it_names_exist(page):
    text = page.read_text("utf-8")
    ours = "benchmarks|docs|examples|export|paper|tests|train"

    for name in re.findall(rf"-m\s((?:{ours})\b[\w.]*\w)", text):
        assert importlib.util.find_spec(command_module(name)), name
    for name in re.findall(r"`([\w.]+/[\w./]*\.(?:py|c|ipynb))`", text):
        assert (ROOT / name).exists(), name


def command_module(name):
    """Returns the module that `python -m NAME` runs."""
    found = importlib.util.find_spec(name)
    assert found, f"there is no module {name}"
    return f"{name}.__main__" if found.submodule_search_locations else name
