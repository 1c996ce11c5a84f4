"""Tests of `python -m export.check`: each kind of damage is named."""

import json
import shutil

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from export import check
from export.bundle import file_layout
from export.bundle.predict_messages import make_request
from export.bundle.warmup_requests import write_warmup
from tests.helpers.python_subprocess import run_python


@pytest.fixture(scope="module")
def model(export_dir):
    return check.SessionModel(export_dir / "1")


@pytest.fixture
def version(export_dir, tmp_path):
    shutil.copytree(export_dir, tmp_path / "export")
    return tmp_path / "export" / "1"


def files_problems(version):
    wanted = check.read_digests(version / file_layout.BUNDLE)
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
    said = run_python("-c", code, "--export-dir", export_dir)

    lines = said.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    for name in (
        *("bundle", "server files", "files", "ops", "xla", "session"),
        *("warm-up", "samples"),
    ):
        assert any(line[6:].startswith(name) for line in lines)
    answer = export_dir / "1" / file_layout.SAMPLES / "serving_default.answer.json"
    for text in json.loads(answer.read_text())["outputs"]["translation"]:
        assert any(repr(text) in line for line in lines)


def test_missing_and_stray_files_are_found(version):
    (version / "fingerprint.pb").unlink()
    (version / "variables" / "variables.index.bak").touch()
    (version.parent / "models.config").unlink()

    assert files_problems(version) == [
        "fingerprint.pb: missing",
        "variables/variables.index.bak: not recorded",
    ]
    (problem,) = check.check_server_files(version.parent).problems
    assert problem == "models.config: missing"


def test_another_answer_is_found(version, model):
    folder = version / file_layout.SAMPLES
    path = folder / "serving_default.answer.json"
    outputs = json.loads(path.read_text())["outputs"]
    said, was_cut = outputs["translation"][1], outputs["truncated"][0]
    outputs["translation"][1] = "something else"
    outputs["truncated"][0] = not was_cut
    path.write_text(json.dumps({"outputs": outputs}))

    changed = check.check_samples(model.run, model.signatures, version)
    name = "serving_default"
    assert changed.problems == [
        f"{name}: translation, row 1: wanted 'something else', received {said!r}",
        f"{name}: truncated, row 0: wanted {not was_cut}, received {was_cut}",
    ]
    assert [line.partition(":")[0] for line in files_problems(version)] == [
        f"{file_layout.SAMPLES}/{path.name}"
    ]


def test_a_sample_that_cannot_be_read_is_found(version, model):
    (version / file_layout.SAMPLES / "translate_options.json").write_text('{"inputs"')

    (problem,) = check.check_samples(model.run, model.signatures, version).problems

    assert problem.startswith("JSONDecodeError: ")


class Deaf:
    """A model that receives every request and answers nothing."""

    def __init__(self):
        self.asked = []

    def __call__(self, signature, inputs):
        self.asked.append(signature)


def test_a_truncated_warmup_is_found(version):
    path = version / file_layout.WARMUP
    whole = Deaf()
    assert check.check_warmup(whole, path).problems == []
    path.write_bytes(path.read_bytes()[:-5])
    cut = Deaf()

    (problem,) = check.check_warmup(cut, path).problems

    count = len(whole.asked)
    assert len(cut.asked) == count - 1
    assert problem.startswith(f"request {count}: DataLossError: ")


@pytest.mark.parametrize("count", [0, 1001])
def test_a_warmup_of_other_size_than_the_server_takes_is_found(tmp_path, count):
    request = make_request("mine", "serving_default", {})
    write_warmup(tmp_path / "file", [request] * count)

    assert check.check_warmup(Deaf(), tmp_path / "file").problems == [
        f"file: wanted 1 to 1000 requests, received {count}"
    ]


def test_ops_and_compiled_functions_are_named():
    meta_graph = tf.compat.v1.MetaGraphDef()
    for name in ("squares", "cubes"):
        function = meta_graph.graph_def.library.function.add()
        function.signature.name = name
        function.node_def.add(name="n", op="Unheard")
        function.attr["_XlaMustCompile"].b = True

    (problem,) = check.check_ops(meta_graph).problems
    assert problem.startswith("Unheard: not in TensorFlow")
    (problem,) = check.check_xla(meta_graph).problems
    assert problem == (
        "compiled by XLA, which the stock server refuses: cubes, squares"
    )


@pytest.mark.parametrize(
    ("file", "content", "name", "problem"),
    [
        (file_layout.BUNDLE, b"{}", "bundle", "KeyError: 'files'"),
        (file_layout.BUNDLE, b"[1]", "bundle", "TypeError: "),
        ("saved_model.pb", b"\xff" * 9, "graph", "DecodeError: "),
    ],
)
def test_what_cannot_be_loaded_ends_the_checks(version, file, content, name, problem):
    (version / file).write_bytes(content)

    found = list(check.check_version(version))

    with pytest.raises(SystemExit, match="1"):
        check.report(found)
    (problems,) = (c.problems for c in found if c.name == name)
    assert problems[0].startswith(problem)
    assert left_out(found) == [*check.RUNTIME_CHECKS]


def is_run(_):
    pytest.fail("nothing may be run")


def left_out(checks):
    return [found.name for found in checks if found.left_out]


def write_a_foreign_op(version):
    path = version / file_layout.SAVED_MODEL
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    model.meta_graphs[0].graph_def.node.add(name="n", op="PyFunc")
    path.write_bytes(model.SerializeToString())
    write_digests(version)


def write_digests(version):
    """Writes `bundle.json` again, as an attacker would."""
    path = version / file_layout.BUNDLE
    bundle = {**json.loads(path.read_text()), "files": None}
    bundle["files"] = file_layout.list_files(version)
    path.write_text(json.dumps(bundle))


@pytest.mark.parametrize(
    ("tamper", "name"),
    [
        (lambda v: flip(v / "variables/variables.data-00000-of-00001", 9), "files"),
        (lambda v: (v / "variables/variables.index.bak").touch(), "files"),
        (write_a_foreign_op, "ops"),
    ],
)
def test_nothing_is_run_that_is_not_as_it_was_written(
    version, monkeypatch, tamper, name
):
    tamper(version)
    monkeypatch.setattr(check, "SessionModel", is_run)

    found = list(check.check_version(version))

    assert [c.name for c in found if c.problems] == [name]
    assert left_out(found) == [*check.RUNTIME_CHECKS]


def test_weights_that_do_not_load_are_found(version):
    flip(version / "variables" / "variables.index", 30)
    write_digests(version)

    found = {c.name: c.problems for c in check.check_version(version)}

    assert found["session"][0].startswith("DataLossError: ")
    assert not found["files"]
    assert "samples" not in found
