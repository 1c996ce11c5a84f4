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


@pytest.fixture
def commands(tmp_path):
    """The folder of the commands in site-packages, with `command_line` alone."""
    folder = tmp_path / COMMANDS
    shutil.copytree(ROOT / "command_line", folder / "command_line")
    return folder


@pytest.mark.parametrize(
    ("command", "extra", "missing"),
    [
        ("convert", "convert", "sentencepieces"),
        ("serve", "web", "uvicorns"),
        # Where the package itself imports it, before `__main__` is found.
        ("train", "train", "tensorflow"),
    ],
)
def test_a_missing_package_names_its_extra(commands, command, extra, missing):
    package = commands / command
    package.mkdir()
    package.joinpath("__init__.py").write_text(
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from command_line import quiet_tensorflow as q; q.start_tensorflow()"
    )
    package.joinpath("__main__.py").write_text(f"import {missing}.model")

    # With `--debug` no TensorFlow is started, which takes long.
    flags = [] if missing == "tensorflow" else ["--debug"]
    done = launch(commands.parent, command, *flags)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        f"error: {command} needs the extra `{extra}`: pip install "
        f"'keras-transformer-translation[{extra}]'. Received: "
    )
    assert missing in done.stderr.splitlines()[-1]
    assert flags or len(done.stderr.splitlines()) == 1


def test_another_project_of_our_module_is_named(commands):
    """What `pip install keras-transformer` leaves in site-packages."""
    info = commands.parent / "keras_transformer-0.40.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Name: keras-transformer\nVersion: 0.40.0\n")
    for record in ("keras_transformer/__init__.py,,\n", "elsewhere.py,,\n"):
        info.joinpath("RECORD").write_text(record)

        done = launch(commands.parent, "--help")

        is_other = record.startswith("keras")
        assert done.returncode == is_other
        assert done.stderr.startswith("error: keras-transformer is") == is_other
    assert done.stdout.startswith("usage: keras-transformer")


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
