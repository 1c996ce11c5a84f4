"""Tests of `export.bundle.server_config`."""

import re

import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from command_line.errors import UserError
from export.bundle.file_layout import SERVER_FILES
from export.bundle.server_config import choose_name, server_release, write_server_files
from export.bundle.warmup_requests import WARMUP_BATCH_SIZES

# Contents of the text files of protos, by name: numbers are wrapped in a
# message.
FIELD = re.compile(r"^ *(\w+)(?: \{ value|): \"?([^\"\s]+)", re.M)


@pytest.fixture
def folder(tmp_path):
    write_server_files(tmp_path, "mine")
    return tmp_path


def test_the_server_finds_the_model(folder):
    text = (folder / "models.config").read_text()

    parsed = text_format.Parse(text, ModelServerConfig())

    (model,) = parsed.model_config_list.config
    assert model.name == "mine"
    assert model.base_path == "/models/mine"
    assert model.model_platform == "tensorflow"


def test_batches_are_as_large_as_the_largest_that_was_warmed_up(folder):
    text = (folder / "batching_parameters.txt").read_text()

    # In the words of session_bundle_config.proto of tensorflow/serving. Nothing
    # is compiled for a shape; to an allowed size batches are filled up.
    assert {name: int(value) for name, value in FIELD.findall(text)} == {
        "max_batch_size": max(WARMUP_BATCH_SIZES),
        "batch_timeout_micros": 2000,
        "max_enqueued_batches": 100,
        "num_batch_threads": 2,
    }


def test_prometheus_finds_the_metrics(folder):
    text = (folder / "monitoring.config").read_text()

    fields = dict(FIELD.findall(text))
    assert "prometheus_config {\n" in text
    assert fields.keys() == {"enable", "path"}
    assert fields["enable"] == "true"
    assert fields["path"] in (folder / "README.md").read_text()


def test_the_readme_names_what_is_there(folder):
    text = (folder / "README.md").read_text()

    for name in ("models.config", "monitoring.config"):
        assert f"_file=/models/mine/{name}" in text
    assert set(re.findall(r"[a-z_]+\.(?:config|txt)", text)) >= {*SERVER_FILES} - {
        "README.md"
    }
    assert f"tensorflow/serving:{server_release()} " in text
    assert f"here {tf.__version__} (`tensorflow` in `1/assets" in text
    assert "serving_default.json\n```" in text


@pytest.mark.parametrize(
    ("tensorflow", "package", "release"),
    [
        ("2.21.0", "2.21.1", "2.21.1"),
        ("2.20.2", "2.21.0", "2.21.0"),
        ("2.21.1", "2.19.1", "2.21.0"),
        ("2.22.0rc1", "2.22.0", "2.22.0"),
    ],
)
def test_the_server_is_as_new_as_tensorflow(monkeypatch, tensorflow, package, release):
    versions = {"tensorflow": tensorflow, "tensorflow-serving-api": package}
    monkeypatch.setattr("importlib.metadata.version", versions.get)

    assert server_release() == release


def test_what_someone_changed_stays(folder):
    (folder / "models.config").write_text("changed")
    (folder / "README.md").unlink()

    write_server_files(folder, "other")

    assert (folder / "models.config").read_text() == "changed"
    text = (folder / "README.md").read_text()
    assert text.startswith("# other\n")
    assert {path.name for path in folder.iterdir()} == set(SERVER_FILES)


def test_the_name_is_that_of_the_folder_and_stays(folder, tmp_path, monkeypatch):
    (tmp_path / "en-de").mkdir()
    monkeypatch.chdir(tmp_path / "en-de")

    for path in (tmp_path / "en-de", tmp_path / "en-de/../en-de"):
        assert choose_name(path, None) == "en-de"
        assert choose_name(path, "other") == "other"
    assert choose_name(folder, "mine") == "mine"
    with pytest.raises(UserError, match="must be mine, as in .*eceived: other"):
        choose_name(folder, "other")


@pytest.mark.parametrize(
    ("folder", "name"),
    [*(("x", name) for name in ("a b", "a/b", "a:b", "é")), ("exports of mine", None)],
)
def test_refuses_a_name_that_no_url_can_hold(tmp_path, folder, name):
    message = f"--model-name must be of letters.*Received: '{name or folder}'"
    with pytest.raises(UserError, match=message):
        choose_name(tmp_path / folder, name)
