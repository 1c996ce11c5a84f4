import gzip
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_models import FunctionRuntime, make_outputs
from translate import __main__ as translate, loading
from translate.bulk import __main__ as bulk

ROOT = pathlib.Path(__file__).parents[3]
needs_beam = pytest.mark.peers("apache_beam")
WORKERS = "--direct_num_workers=2"


@pytest.fixture
def text(tmp_path):
    lines = [f"{SENTENCES[n % 6]} {n}".encode() for n in range(23)]
    (tmp_path / "b.en.gz").write_bytes(gzip.compress(b"\n".join(lines[10:]) + b"\n"))
    (tmp_path / "a.en").write_bytes(b"\n".join(lines[:10]))
    return lines


@pytest.fixture
def command(tmp_path, export_dir):
    return [
        *(f"--input={tmp_path}/*.en*", f"--output={tmp_path}/out"),
        *(f"--export-dir={export_dir}", "--shard-lines=4"),
    ]


@pytest.fixture
def capitals(monkeypatch):
    """A model that is a function, in the place of the export's."""
    loads = []

    def shout(texts):
        if b"poison" in texts:
            raise ValueError("cannot be borne")
        return make_outputs([text.upper() for text in texts], limit=70)

    def load(export_dir, version):
        loads.append((export_dir, version))
        time.sleep(0.3)  # So that all threads ask for it.
        return FunctionRuntime(shout)

    monkeypatch.setattr("translate.bulk.pipeline.load_export", load)
    return loads


def read(folder, name):
    return b"".join(
        gzip.decompress(path.read_bytes())
        for path in sorted(folder.glob(f"{name}-*.gz"))
    ).splitlines()


def state(folder):
    """Returns values that change if a file is written again."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in folder.glob("*-of-*")
    }


@needs_beam
def test_writes_what_export_translate_does(command, text, tmp_path, export_dir, capsys):
    bulk.main(command)

    out = tmp_path / "out"
    assert sorted(path.name for path in out.glob("*[!v]")) == [
        *(f"a.en-0000{n}-of-00003.gz" for n in range(3)),
        *(f"b.en-0000{n}-of-00004.gz" for n in range(4)),
        "bulk.json",
    ]
    assert len(read(out, "a.en")) == 10
    (tmp_path / "whole").write_bytes(b"\n".join(text))
    files = [f"--input={tmp_path / 'whole'}", f"--output={tmp_path / 'expected'}"]
    translate.main([f"--export-dir={export_dir}", *files])
    expected = (tmp_path / "expected").read_bytes().splitlines()
    assert read(out, "a.en") + read(out, "b.en") == expected
    # Its weights are random.
    assert "0 were left empty and 23 cut" in capsys.readouterr().err
    notes = b"".join(path.read_bytes() for path in out.glob("*.tsv"))
    assert notes.count(b"\tcut at the model's limit of tokens\n") == 23


@needs_beam
@pytest.mark.usefixtures("text")
def test_makes_only_the_shards_that_are_not_there(command, tmp_path, capitals):
    bulk.main(command)
    out = tmp_path / "out"
    before, content = state(out), (out / "b.en-00002-of-00004.gz").read_bytes()
    bulk.main(command)
    assert state(out) == before
    assert len(capitals) == 1
    (out / "b.en-00002-of-00004.gz").unlink()
    (out / "b.en-00002-of-00004.gz.0f.part").touch()
    (tmp_path / "c.en").write_bytes(b"one more\n")

    bulk.main(command)

    after = state(out)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"b.en-00002-of-00004.gz", "c.en-00000-of-00001.gz"}
    assert (out / "b.en-00002-of-00004.gz").read_bytes() == content
    assert not list(out.glob("*.part"))


@needs_beam
@pytest.mark.usefixtures("capitals")
def test_what_is_wrong_with_a_line_is_noted(command, tmp_path, capsys):
    out = tmp_path / "out"
    lines = [b"one", b"\xff", b"", b"poison", b"five", b"x" * 71, b"seven"]
    (tmp_path / "a.en").write_bytes(b"\n".join(lines))
    out.mkdir()
    (out / "a.en-00000-of-00002.faults.tsv").write_text("of a killed run")
    (tmp_path / "b.en").write_bytes(b"fine")
    (out / "b.en-00000-of-00001.faults.tsv").write_text("of a killed run")
    (tmp_path / "c.en").touch()

    bulk.main(command)

    expected = [b"ONE", b"", b"", b"", b"FIVE", b"X" * 70, b"SEVEN"]
    assert read(out, "a.en") == expected
    assert (out / "c.en-00000-of-00001.gz").exists()
    faults = sorted(out.glob("*.tsv"))
    assert [path.name[:10] for path in faults] == ["a.en-00000", "a.en-00001"]
    path = tmp_path / "a.en"
    assert "".join(fault.read_text() for fault in faults) == (
        f"{path}\t2\tnot text: byte 0xff at column 1\n"
        f"{path}\t4\tValueError: cannot be borne\n"
        f"{path}\t6\tcut at the model's limit of tokens\n"
    )
    assert "2 were left empty and 1 cut" in capsys.readouterr().err


@needs_beam
@pytest.mark.usefixtures("text")
def test_the_threads_of_a_worker_share_one_model(command, capitals, export_dir):
    bulk.main([*command, WORKERS, "--direct_running_mode=multi_threading"])

    assert capitals == [(export_dir, 1)]


@needs_beam
@pytest.mark.usefixtures("text")
def test_refuses_what_does_not_fit(command, tmp_path, refused):
    def said(*arguments):
        return refused(bulk, *command, *arguments)

    assert "--runner must be one that Beam has" in said("--runner=Nil")
    assert said("--input=none").endswith("no such file: none")
    assert "--batch-tokens must be 1" in said("--batch-tokens=0")
    assert "positive int" in said("--shard-lines=0")
    for name in ("input", "output"):
        message = f"--{name} must be of a file system that Beam has"
        assert message in said(f"--{name}=nil://there")
    assert not (tmp_path / "out").exists()


@needs_beam
@pytest.mark.usefixtures("text", "capitals")
def test_refuses_another_model_in_the_same_folder(
    refused, command, tmp_path, capsys, export_dir
):
    bulk.main(command)
    capsys.readouterr()
    shutil.copytree(export_dir / "1", tmp_path / "other" / "2")

    said = refused(bulk, *command, f"--export-dir={tmp_path / 'other'}")

    assert "--output must be a folder for one model" in said
    assert "of model {'version': 1" in said
    assert "here it is {'version': 2" in said


@needs_beam
@pytest.mark.usefixtures("text")
def test_a_worker_without_the_export_is_told_of(command, capsys, monkeypatch):
    def load(export_dir, version):
        return loading.load_export(export_dir / "nowhere", version=version)

    monkeypatch.setattr("translate.bulk.pipeline.load_export", load)

    with pytest.raises(SystemExit, match="2"):
        bulk.main(command)

    error = capsys.readouterr().err
    assert "error: --export-dir must be a folder that `python" in error


def test_refuses_to_begin_without_beam(monkeypatch, refused, command):
    monkeypatch.setitem(sys.modules, "apache_beam", None)

    said = refused(bulk, *command)

    assert said.startswith("error: translate.bulk needs the extra `bulk`: pip")


@pytest.mark.parametrize("flag", ["b.en", "--bath-tokens=3", "--runner-x"])
def test_refuses_what_is_no_option(command, refused, flag):
    assert refused(bulk, *command, flag).endswith(f"Received: {flag}")


@needs_beam
@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path, export_dir):
    lines = [f"{SENTENCES[n % 6]} {n}" for n in range(800)]
    (tmp_path / "a.en").write_text("\n".join(lines))

    def start(folder):
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "translate.bulk", "--shard-lines=20"),
                *(f"--input={tmp_path}/*.en", f"--output={tmp_path / folder}"),
                *(f"--export-dir={export_dir}", WORKERS),
                "--direct_running_mode=multi_processing",
            ],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    whole = start("whole")
    _, said = whole.communicate()
    assert whole.returncode == 0, said
    assert len(said.splitlines()) == 2  # Nothing of Beam's or TensorFlow's.
    killed, out = start("killed"), tmp_path / "killed"
    while len(list(out.glob("*.gz"))) < 3:
        assert killed.poll() is None
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    before = state(out)
    made = len(list(out.glob("*.gz")))
    assert 3 <= made < 40

    again = start("killed")
    _, said = again.communicate()

    assert again.returncode == 0, said
    assert f"40 shards, {made} of them are there" in said
    after = state(out)
    assert {name: after[name] for name in before} == before
    expected = list((tmp_path / "whole").iterdir())
    for path in expected:
        assert (out / path.name).read_bytes() == path.read_bytes()
    assert len(list(out.iterdir())) == len(expected) >= 41
    assert len(read(out, "a.en")) == 800
