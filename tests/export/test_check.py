"""Tests of `python -m export.check`: each kind of damage is named."""

import ast
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import tensorflow as tf

from export import check
from export.bundle import layout
from export.bundle.predict_messages import make_request
from export.bundle.warmup import write_warmup

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(export_dir):
    return check.SessionModel(export_dir / "1")


@pytest.fixture
def version(export_dir, tmp_path):
    """A copy of the export's version, to be damaged."""
    shutil.copytree(export_dir, tmp_path / "export")
    return tmp_path / "export" / "1"


def files_problems(version):
    wanted = check.read_bundle(version)
    return check.check_files(version, wanted).problems


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.slow
def test_a_whole_export_passes_in_a_clean_process(export_dir):
    code = """
import runpy, sys
try:
    runpy.run_module("export.check", run_name="__main__", alter_sys=True)
finally:
    ours = {"keras_transformer", "train", "tests"}
    assert not ours & {name.split(".")[0] for name in sys.modules}
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "--export-dir", str(export_dir)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    for name in (
        *("bundle", "server files", "files", "ops", "xla", "session"),
        *("warm-up", "samples"),
    ):
        assert any(line[6:].startswith(name) for line in lines)
    answer = export_dir / "1" / layout.SAMPLES / "rest_row.answer.json"
    for row in json.loads(answer.read_text())["predictions"]:
        assert any(repr(row["translation"]) in line for line in lines)


def test_it_imports_nothing_of_the_model():
    pending, seen = ["export.check"], set()
    while pending:
        name = pending.pop()
        seen.add(name)
        path = ROOT / f"{name.replace('.', '/')}.py"
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [f"{node.module}.{node.names[0].name}", node.module]
            else:
                continue
            for module in modules:
                package = module.split(".")[0]
                assert package not in {"keras", "keras_transformer", "train"}
                is_module = (ROOT / f"{module.replace('.', '/')}.py").exists()
                if is_module and module not in seen:
                    pending.append(module)
    wanted = {"layout", "graph", "samples", "versions", "warmup"}
    assert {f"export.bundle.{name}" for name in wanted} <= seen


def test_a_whole_export_has_no_problems(version):
    assert files_problems(version) == []
    assert check.check_server_files(version.parent).problems == []


def test_settings_that_are_gone_are_no_problem(version):
    path = version / layout.BUNDLE
    bundle = json.loads(path.read_text())
    bundle["settings"]["xla"] = True
    path.write_text(json.dumps(bundle))

    assert files_problems(version) == []


def test_a_flipped_bit_is_found(version):
    name = "variables/variables.data-00000-of-00001"
    flip(version / name, 1000)

    (problem,) = files_problems(version)

    size = (version / name).stat().st_size
    assert problem.startswith(f"{name}: wanted {size} bytes of SHA-256 ")
    assert f"received {size} bytes of SHA-256" in problem


def test_missing_and_stray_files_are_found(version):
    (version / "fingerprint.pb").unlink()
    (version / "variables" / "variables.index.bak").touch()
    (version / layout.SCORES).write_text("{}")  # What comes later is no damage.
    (version.parent / "models.config").unlink()

    assert files_problems(version) == [
        "fingerprint.pb: missing",
        f"variables/variables.index.bak: not in {layout.BUNDLE}",
    ]
    (problem,) = check.check_server_files(version.parent).problems
    assert problem == "models.config: missing"


def test_another_answer_is_found(version, model):
    folder = version / layout.SAMPLES
    whole = check.check_samples(model, folder)
    path = folder / "rest_row.answer.json"
    answer = json.loads(path.read_text())
    said = answer["predictions"][1]["translation"]
    answer["predictions"][1]["translation"] = "something else"
    path.write_text(json.dumps(answer))
    grpc = folder / "grpc.answer.txt"
    other = {"true": "false", "false": "true"}
    text, was, rest = re.split("(?<=bool_val: )([a-z]+)", grpc.read_text())
    grpc.write_text(text + other[was] + rest)

    assert whole.problems == []
    assert check.check_samples(model, folder).problems == [
        "rest_row: translation, row 1: wanted 'something else', "
        f"received {said!r}",
        f"grpc: truncated, row 0: wanted {other[was].title()}, "
        f"received {was.title()}",
    ]
    assert [line.partition(":")[0] for line in files_problems(version)] == [
        f"{layout.SAMPLES}/grpc.answer.txt",
        f"{layout.SAMPLES}/rest_row.answer.json",
    ]


def test_a_sample_that_cannot_be_read_is_found(version, model):
    (version / layout.SAMPLES / "rest_columnar.json").write_text('{"inputs"')

    (problem,) = check.check_samples(model, version / layout.SAMPLES).problems

    assert problem.startswith("JSONDecodeError: ")


class Deaf:
    """A model that hears every request and says nothing."""

    def __init__(self, refused=None):
        self.asked = []
        self._refused = refused

    def run(self, signature, inputs):
        if signature == self._refused:
            raise tf.errors.InvalidArgumentError(None, None, "no\nreally")
        self.asked.append(signature)


def test_a_truncated_warmup_is_found(version):
    path = version / layout.WARMUP
    whole = Deaf()
    assert check.check_warmup(whole, path).problems == []
    path.write_bytes(path.read_bytes()[:-5])
    cut = Deaf()

    (problem,) = check.check_warmup(cut, path).problems

    count = len(whole.asked)
    assert len(cut.asked) == count - 1
    assert problem.startswith(f"request {count}: DataLossError: ")


def test_a_warmup_request_that_fails_is_found(version):
    (problem,) = check.check_warmup(
        Deaf("serving_default"), version / layout.WARMUP
    ).problems

    assert problem.endswith(": InvalidArgumentError: no")


@pytest.mark.parametrize("count", [0, 1001])
def test_a_warmup_of_other_size_than_the_server_takes_is_found(tmp_path, count):
    request = make_request("mine", "serving_default", {})
    write_warmup(tmp_path / "file", [request] * count)

    assert check.check_warmup(Deaf(), tmp_path / "file").problems == [
        f"file: wanted 1 to 1000 requests, received {count}"
    ]


def test_ops_and_compiled_functions_are_named():
    meta_graph = tf.compat.v1.MetaGraphDef()
    meta_graph.graph_def.node.add(name="n", op="Unheard")
    for name in ("squares", "cubes"):
        function = meta_graph.graph_def.library.function.add()
        function.signature.name = name
        function.attr["_XlaMustCompile"].b = True

    (problem,) = check.check_ops(meta_graph).problems
    assert problem.startswith("Unheard: not in TensorFlow")
    (problem,) = check.check_xla(meta_graph).problems
    assert problem == (
        "compiled by XLA, which the stock server refuses: cubes, squares"
    )


@pytest.mark.parametrize(
    ("damage", "name", "problem"),
    [
        (
            lambda folder: (folder / layout.BUNDLE).unlink(),
            "bundle",
            "FileNotFoundError: ",
        ),
        (
            lambda folder: (folder / layout.BUNDLE).write_text("{}"),
            "bundle",
            "KeyError: 'files'",
        ),
        (
            lambda folder: (folder / layout.BUNDLE).write_text("[1]"),
            "bundle",
            "TypeError: ",
        ),
        (
            lambda folder: (folder / "saved_model.pb").write_bytes(b"\xff" * 9),
            "graph",
            "DecodeError: ",
        ),
    ],
)
def test_what_cannot_be_loaded_ends_the_checks(
    version, capsys, damage, name, problem
):
    damage(version)
    arguments = ["--export-dir", str(version.parent)]

    with pytest.raises(SystemExit) as exit_:
        check.main(arguments)
    lines = capsys.readouterr().out.splitlines()
    with pytest.raises(SystemExit):
        check.main([*arguments, "--json"])
    checks = json.loads(capsys.readouterr().out)

    assert exit_.value.code == 1
    assert any(
        line.startswith(f"{'WRONG':6}{name:13}{problem}") for line in lines
    )
    assert {c["name"]: c["problems"] for c in checks}[name][0].startswith(
        problem
    )
    assert not {"session", "samples"} & {c["name"] for c in checks}


def test_weights_that_do_not_load_are_found(version):
    flip(version / "variables" / "variables.index", 30)

    found = {c.name: c.problems for c in check.check_version(version)}

    assert found["session"][0].startswith("DataLossError: ")
    assert found["files"]
    assert "samples" not in found


def test_a_file_that_cannot_be_read_is_found(tmp_path, monkeypatch):
    def refuse(folder):
        raise PermissionError(13, "Permission denied", "variables.index")

    monkeypatch.setattr(check, "read_bundle", lambda folder: {})
    monkeypatch.setattr(layout, "list_files", refuse)

    found = {c.name: c.problems for c in check.check_version(tmp_path / "1")}

    assert "Permission denied: 'variables.index'" in found["files"][0]
    assert "graph" in found  # The others go on.


def test_mistakes_end_in_one_line(version, tmp_path, capsys):
    (tmp_path / "other" / "1").mkdir(parents=True)
    (tmp_path / "other" / "1" / "model.bin").touch()
    for arguments, message in (
        (
            ["--export-dir", tmp_path / "other"],
            "must hold a SavedModel. Received: "
            f"{tmp_path / 'other'}, of the format ctranslate2",
        ),
        (["--export-dir", tmp_path / "no"], "`python -m export` wrote. Rec"),
        (
            ["--export-dir", version.parent, "--version", "7"],
            "--version must be one of 1. Received: 7",
        ),
    ):
        with pytest.raises(SystemExit) as exit_:
            check.main([str(argument) for argument in arguments])
        (line,) = capsys.readouterr().err.splitlines()
        assert exit_.value.code == 2
        assert line.startswith("error: ")
        assert message in line
