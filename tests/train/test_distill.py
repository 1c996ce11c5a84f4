import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import train.__main__ as train_command
from tests.helpers.error_capture import refusal
from tests.helpers.example_sentences import SENTENCES
from train import distill
from train.options import parse_options
from translate import __main__ as translate

POPEN = subprocess.Popen
VALIDATION = ["--validation-source=v.en", "--validation-target=v.de"]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A folder with text; `train` and the command of translation are spies."""
    monkeypatch.chdir(tmp_path)
    lines = SENTENCES * 3
    for name in ("a.en", "v.en", "v.de"):
        pathlib.Path(name).write_text("".join(f"{line}\n" for line in lines))
    for version in ("teacher/9", "teacher/10", "other/1"):
        pathlib.Path(version).mkdir(parents=True)
        (pathlib.Path(version) / "weights").write_text(version)
    trained = []

    def translate_in_capitals(command, **kwargs):
        assert command[1:4] == ["-m", "translate", "--export-dir"]
        return POPEN(["tr", "a-z", "A-Z"], **kwargs)

    monkeypatch.setattr(train_command, "main", trained.append)
    monkeypatch.setattr(subprocess, "Popen", translate_in_capitals)
    return trained, lines


def command(*options, teacher="teacher"):
    return [f"--teacher={teacher}", "--run-dir=run", *VALIDATION, *options]


def write_arguments(path, **more):
    arguments = {"train_source": "a.en", "vocabulary_size": 400, "max_length": 90}
    content = {"arguments": arguments | more, "steps_per_epoch": 1, "packages": {}}
    content["preset"] = {"description": ""}
    pathlib.Path(path).write_text(json.dumps(content))


def test_trains_on_the_translations_and_resumes_them(corpus):
    trained, lines = corpus
    options = command("--train-source=a.en", "--preset=tiny")
    expected = "".join(f"{line.upper()}\n" for line in lines)

    distill.main(options)

    (given,) = trained
    assert given[:-2] == options[1:]
    targets = pathlib.Path(given[-1])
    assert targets.read_text() == expected
    assert given[-2:] == ["--train-target", str(targets)]

    # As a kill in the middle of line 3 leaves it.
    first = expected.splitlines(keepends=True)[:2]
    part = targets.with_name(f"{targets.name}.part")
    part.write_text("OLD\n" + first[1] + "NOT A WHOLE LI")
    targets.unlink()
    distill.main(options)

    assert trained[1] == given
    assert targets.read_text() == "OLD\n" + expected.removeprefix(first[0])
    assert not part.exists()
    targets.write_text("whole\n")
    distill.main(options)
    assert targets.read_text() == "whole\n"
    distill.main(command("--train-source=a.en", teacher="other"))
    # The newest version counts, and its content.
    pathlib.Path("teacher/9/weights").write_text("not used")
    distill.main(options)
    pathlib.Path("teacher/10/weights").write_text("trained longer")
    distill.main(options)
    assert trained[-2] == given
    assert len({of_run[-1] for of_run in trained[-3:]}) == 3


def test_repeats_a_run_from_text_files(corpus):
    write_arguments("arguments.json", train_target="a.de", seed=3)

    distill.main(command("--config=arguments.json"))

    given = parse_options(corpus[0][0])
    assert given.training.seed == 3
    assert given.corpus.train_target.name.startswith("distilled-")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--train-source=no"], "no such file: no"),
        ([], "--train-source must be the text.*none"),
        (["--train-target=x"], "left out, .*: --train-target=x"),
        (["--alignments=a.en"], "left out, .*: --alignments"),
        (["--drop-invalid"], "left out, .*: --drop-invalid"),
        (["--train-source=a.en", "--preset=typo"], "--preset must be one of"),
        (["--train-source=a.en", "--init-from=no"], "--init-from must be"),
        (["--train-source=a.en", "--validation-source=no"], "no such file: no"),
        (
            ["--train-source=a.en", "--teacher=empty"],
            "--teacher must be a folder that .*: empty",
        ),
    ],
)
def test_refuses_before_it_translates(corpus, options, message, capsys):
    line = refusal(capsys, distill.main, command(*options))

    assert re.search(message, line)
    assert not corpus[0]
    assert not list(pathlib.Path().glob("run/*"))


def test_refuses_a_vocabulary_without_placeholders(corpus, run_dir, capsys):
    tokenizer = f"--tokenizer={run_dir / 'tokenizer.model'}"

    line = refusal(
        capsys,
        distill.main,
        command("--train-source=a.en", "--placeholders", tokenizer),
    )

    assert "must be subwords of --tokenizer" in line
    assert not list(pathlib.Path().glob("run/*"))


@pytest.mark.parametrize("option", [{"alignments": "a.en"}, {"drop_invalid": True}])
def test_a_file_has_no_options_of_the_targets(corpus, option, capsys):
    write_arguments("arguments.json", **option)

    line = refusal(capsys, distill.main, command("--config=arguments.json"))

    assert "must be left out, since the teacher" in line
    assert not corpus[0]


def test_refuses_to_hold_out_what_the_teacher_translates(corpus, capsys):
    options = ["--teacher=teacher", "--run-dir=run", "--train-source=a.en"]

    line = refusal(capsys, distill.main, options)

    assert "validation files must be given" in line
    assert not corpus[0]


def test_refuses_another_teacher_than_that_of_the_run(corpus, capsys):
    options = "--train-source=a.en", "--preset=tiny"
    distill.main(command(*options))
    write_arguments("run/arguments.json")

    line = refusal(capsys, distill.main, command(*options, teacher="other"))

    assert "--teacher and --train-source must be those of the run" in line
    assert "run, whose text is distilled-" in line
    assert len(corpus[0]) == 1
    assert len([*pathlib.Path("run").iterdir()]) == 2
    distill.main(command(*options))
    assert len(corpus[0]) == 2


def test_a_teacher_that_fails_leaves_no_text(corpus, monkeypatch):
    monkeypatch.setattr(
        subprocess, "Popen", lambda _, **kwargs: POPEN(["false"], **kwargs)
    )

    with pytest.raises(SystemExit):
        distill.main(command("--train-source=a.en"))

    assert not [*pathlib.Path("run").iterdir()]


def test_refuses_a_pipe(corpus, capsys):
    reader, writer = os.pipe()
    os.close(writer)

    with open(reader) as pipe:
        source = f"--train-source=/dev/fd/{pipe.fileno()}"
        line = refusal(capsys, distill.main, command(source))

    assert "text must be in a file" in line


def test_refuses_a_second_process_and_missing_lines(corpus, monkeypatch, capsys):
    options = command("--train-source=a.en")
    distill.main(options)
    targets = pathlib.Path(corpus[0][0][-1])
    targets.unlink()
    part = targets.with_name(f"{targets.name}.part")

    with part.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        line = refusal(capsys, distill.main, options)
        assert f"another process is writing to {part}" in line
    monkeypatch.setattr(
        subprocess, "Popen", lambda _, **kwargs: POPEN(["true"], **kwargs)
    )
    line = refusal(capsys, distill.main, options)
    assert f"a line for each of a.en. Received: 0 and {len(SENTENCES * 3)}" in (line)
    assert not targets.exists()


def test_no_other_process_renames_or_repeats_the_translations(corpus, monkeypatch):
    options = command("--train-source=a.en")
    rename = pathlib.Path.rename

    def rename_locked(path, target):
        with path.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return rename(path, target)

    monkeypatch.setattr(pathlib.Path, "rename", rename_locked)
    distill.main(options)
    targets = pathlib.Path(corpus[0][0][-1])

    # Another process has ended while this one opened the file.
    targets.unlink()
    monkeypatch.setattr(distill, "lock", lambda *_: targets.write_text("its own\n"))
    distill.main(options)
    assert targets.read_text() == "its own\n"
    assert not list(targets.parent.glob("*.part"))


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_signal_ends_the_translation_and_keeps_its_code(has_ended):
    process = POPEN(["sleep", "60"], stdin=subprocess.PIPE)

    def lines():
        yield "one"
        if has_ended:  # A terminal sends Ctrl-C to both.
            process.kill()
            process.wait()
        raise SystemExit(143)

    with pytest.raises(SystemExit, match="143"):
        distill.feed(process, lines())

    number = signal.SIGKILL if has_ended else signal.SIGTERM
    assert process.returncode == -number


@pytest.mark.slow
def test_a_student_learns_from_an_export(export_dir, tmp_path):
    for name in ("a.en", "v.en", "v.de"):
        (tmp_path / name).write_text("".join(f"{s}\n" for s in SENTENCES * 9))
    folder = tmp_path / "run"

    distill.main(
        [
            *(f"--teacher={export_dir}", f"--run-dir={folder}"),
            *(f"--train-source={tmp_path}/a.en", "--vocabulary-size=330"),
            f"--validation-source={tmp_path}/v.en",
            f"--validation-target={tmp_path}/v.de",
            *("--preset=tiny", "--num-layers=1", "--hidden-dim=16"),
            *("--steps=2", "--batch-tokens=200", "--warmup-steps=1"),
        ]
    )

    assert (folder / "model.keras").exists()
    (targets,) = folder.glob("distilled-*.txt")
    expected = tmp_path / "expected"
    translate.main(
        [f"--export-dir={export_dir}", f"--input={tmp_path}/a.en"]
        + [f"--output={expected}"]
    )
    assert targets.read_text() == expected.read_text()
