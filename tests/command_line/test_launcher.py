"""Tests of `keras-transformer`, the command of an installation."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from command_line.launcher import make_completion
from keras_transformer.__main__ import describe

ROOT = pathlib.Path(__file__).parent.parent.parent
TOP_LEVEL = {"keras_transformer", "keras_transformer_commands"}


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


def launch(installed, *arguments):
    """Runs `keras-transformer` outside of the clone."""
    script = "import keras_transformer_commands as k; k.main()"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_wheel_has_no_generic_names(installed):
    found = {path.name for path in installed.iterdir()}
    assert {name for name in found if "dist-info" not in name} == TOP_LEVEL
    names = {path.name for path in installed.glob("*.dist-info/*")}
    assert "entry_points.txt" in names


def test_a_missing_package_names_its_extra(tmp_path):
    commands = tmp_path / "keras_transformer_commands"
    shutil.copytree(ROOT / "command_line/launcher", commands)
    (commands / "train").mkdir()
    (commands / "train/__init__.py").touch()
    (commands / "train/__main__.py").write_text("import sentencepieces")
    script = "import keras_transformer_commands as k; k.main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "train"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "needs the extra `train`" in line
    assert line.endswith("Received: no module sentencepieces")


@pytest.mark.slow
def test_a_wheel_has_the_pages(installed):
    commands = installed / "keras_transformer_commands"
    for folder in ("serve/page", "export/litert/page"):
        files = {path.name for path in (commands / folder).iterdir()}
        assert len(files) >= 3
    assert (commands / "translate/report/explain.html").exists()


@pytest.mark.slow
def test_commands_run_from_a_wheel(installed):
    done = launch(installed, "convert", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: python -m convert")
    assert not done.stderr


@pytest.mark.slow
def test_other_commands_are_refused(installed):
    done = launch(installed, "trane")
    assert done.returncode == 2
    assert done.stderr.endswith("translate.bulk, convert. Received: trane\n")
    assert "translate.bulk, convert\n" in launch(installed).stdout
    done = launch(installed, "--print-completion", "fish")
    assert done.stderr.endswith("of bash, zsh, tcsh. Received: fish\n")


@pytest.mark.slow
def test_a_shell_completes_options(installed):
    done = launch(installed, "--print-completion", "bash")
    assert done.returncode == 0, done.stderr
    script = f"{done.stdout}\ncomplete -p keras-transformer"
    found = subprocess.run(["bash"], input=script, capture_output=True, text=True)
    assert "keras-transformer" in found.stdout
    for option in ("--run-dir", "--beam-size", "--batch-tokens"):
        assert option in done.stdout


def test_own_options_of_a_command_are_completed():
    script = make_completion("bash")

    for name, own in (("distill", "teacher"), ("grid", "seeds")):
        command = re.escape(f"_train_{name}_option_strings=(")
        (options,) = re.findall(rf"{command}(.*)\)", script)
        for option in (own, "run-dir", "batch-tokens"):
            assert options.split().count(f"--{option}") == 1


def test_versions_and_devices_are_listed():
    rows = dict(line.split(maxsplit=1) for line in describe().splitlines())
    assert rows["backend"] == "tensorflow"
    assert rows["python"].startswith(".".join(map(str, sys.version_info[:2])))
    assert "cpu" in rows["devices"]
