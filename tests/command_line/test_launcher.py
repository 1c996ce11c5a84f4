"""Tests of `keras-transformer`, the command of an installation."""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
COMMANDS = "keras_transformer_commands"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Site-packages with what a wheel has, and nothing of this clone."""
    folder = tmp_path_factory.mktemp("installed")
    # A build leaves files that the next one would take.
    clone = folder / "clone"
    ignored = shutil.ignore_patterns(".*", "build", "runs", "exports")
    shutil.copytree(ROOT, clone, ignore=ignored)
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps")
    subprocess.run([*command, "--wheel-dir", folder, clone], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def launch(site, *arguments):
    script = f"from {COMMANDS}.command_line.launcher import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=site.parent,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_missing_package_names_its_extra(tmp_path):
    commands = tmp_path / COMMANDS
    shutil.copytree(ROOT / "command_line", commands / "command_line")
    (commands / "convert").mkdir()
    start = "from command_line import quiet_tensorflow as q; q.start_tensorflow()"
    (commands / "convert/__init__.py").write_text(start)
    (commands / "convert/__main__.py").write_text("import sentencepieces.model")

    # With `--debug` no TensorFlow is started, which takes long.
    done = launch(tmp_path, "convert", "--debug")

    assert done.returncode == 2
    assert done.stderr.endswith(
        "error: convert needs the extra `convert`: pip install '.[convert]' in a "
        "clone of this project. Received: no module sentencepieces\n"
    )


@pytest.mark.slow
def test_a_wheel_has_no_generic_names_and_all_files(installed):
    found = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
    assert found == {"keras_transformer", COMMANDS}
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    for name in files:
        if installed.joinpath(COMMANDS, name.partition("/")[0]).is_dir():
            assert installed.joinpath(COMMANDS, name).exists()


@pytest.mark.slow
def test_commands_run_from_a_wheel(installed):
    # A file where the command is run does not take the place of a module.
    installed.parent.joinpath("convert.py").write_text("raise SystemExit(3)")
    done = launch(installed, "convert", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python -m convert")
    assert not done.stderr
    assert launch(installed, "trane").returncode == 2
