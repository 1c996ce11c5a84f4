"""Tests of `export.bundle.write_version`, `.file_layout` and `.versions`."""

import hashlib
import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_transformer
from command_line.errors import UserError
from export.bundle import file_layout
from export.bundle.file_layout import SAVED_MODEL
from export.bundle.run_loading import read_arguments, read_notes
from export.bundle.sample_requests import write_samples
from export.bundle.versions import find_version, find_versions, new_version


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_the_bundle_knows_every_file(export_dir, run_dir):
    folder = export_dir / "1"
    bundle = json.loads((folder / file_layout.BUNDLE).read_text())
    expected = {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in folder.rglob("*")
        if path.is_file()
    }
    del expected["assets.extra/bundle.json"]

    assert bundle["files"] == expected
    assert names_in(export_dir) == {"1", *file_layout.SERVER_FILES}
    named = {"variables/variables.index", "assets.extra/tf_serving_warmup_requests"}
    assert named < expected.keys()
    assert bundle["model_name"] == "reverse"
    assert bundle["runs"] == [read_arguments(run_dir)]
    assert bundle["settings"]["beam_size"] == 3
    assert bundle["precision"] == "float32"
    assert bundle["packages"]["tensorflow"] == tf.__version__
    assert bundle["packages"]["keras"] == keras.__version__
    assert bundle["packages"]["keras_transformer"] == keras_transformer.__version__


def test_notes_of_another_model_are_left_out(tmp_path, capsys):
    (tmp_path / "model.keras").write_bytes(b"another")
    notes = {"sha256": hashlib.sha256(b"the model").hexdigest(), "samples": []}
    (tmp_path / "model.json").write_text(json.dumps(notes))

    assert read_notes(tmp_path) == {}
    assert "is of another model.keras" in capsys.readouterr().err
    (tmp_path / "model.json").write_text('{"sha')
    with pytest.raises(UserError, match="model.json must be whole"):
        read_notes(tmp_path)
    (tmp_path / "model.json").unlink()
    assert read_notes(tmp_path) == {}


class Tokens:
    """Stands where a `Translator` would; has one signature, and no graph."""

    def __init__(self, score):
        self.score = score

    def __call__(self, text, **options):
        texts = [b"<" + line + b">" for line in text.tolist()]
        return {
            "translation": tf.constant(texts),
            "score": tf.fill(len(texts), self.score),
        }


@pytest.mark.parametrize("score", [math.nan, -math.inf])
def test_no_sample_has_a_score_that_is_none(tmp_path, score):
    signatures = {
        name: Tokens(score) for name in ("serving_default", "translate_options")
    }
    inputs = {name: {"text": np.array([b"a b"], object)} for name in signatures}

    with pytest.raises(UserError, match=f"finite.*: score {score} of 'a b'"):
        write_samples(tmp_path, signatures, inputs)
    assert not names_in(tmp_path)


def write(export_dir, version=None):
    with new_version(export_dir, SAVED_MODEL, version) as (folder, beside):
        (beside / "saved_model.pb").touch()
    return folder.name


def test_a_new_version_takes_the_next_number(tmp_path):
    export_dir = tmp_path / "new" / "export"

    assert write(export_dir) == "1"
    assert write(export_dir, 7) == "7"
    assert write(export_dir) == "8"
    assert write(export_dir, 0) == "0"
    names = {path.name for path in find_versions(export_dir)}
    assert names == {"0", "1", "7", "8"}


def test_a_version_is_never_overwritten(tmp_path):
    write(tmp_path)
    (tmp_path / "1" / "saved_model.pb").write_text("old")

    with pytest.raises(UserError, match="Received: 1, and .*1 exists"):
        write(tmp_path, 1)

    assert (tmp_path / "1" / "saved_model.pb").read_text() == "old"
    assert names_in(tmp_path) == {"1"}


def test_a_version_is_no_export(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").touch()

    with pytest.raises(UserError, match=f"/1, a version of the export {tmp_path}$"):
        find_version(tmp_path / "1", SAVED_MODEL)


def test_an_export_that_dies_leaves_no_version(tmp_path):
    def die():
        with new_version(tmp_path, SAVED_MODEL) as (_, beside):
            (beside / "saved_model.pb").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        die()

    assert names_in(tmp_path) == set()


def test_only_what_an_export_left_is_removed(tmp_path):
    (tmp_path / ".2.part" / "variables").mkdir(parents=True)
    for name in (".film.mkv.part", ".x.part"):
        (tmp_path / name).touch()

    assert find_versions(tmp_path) == []
    # No number, so the server does not look.
    assert not any(name.isdecimal() for name in names_in(tmp_path))
    assert write(tmp_path, 3) == "3"
    assert names_in(tmp_path) == {"3", ".film.mkv.part", ".x.part"}


def test_two_exports_do_not_meet(tmp_path):
    with new_version(tmp_path, SAVED_MODEL) as (_, beside):
        (beside / "saved_model.pb").touch()
        with pytest.raises(UserError, match="another process is writing to"):
            write(tmp_path)
    assert write(tmp_path) == "2"
