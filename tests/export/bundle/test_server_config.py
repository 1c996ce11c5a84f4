import re

import pytest
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from command_line.errors import UserError
from export.bundle.file_layout import SERVER_FILES
from export.bundle.server_config import choose_name, server_release, write_server_files
from export.bundle.warmup_requests import WARMUP_BATCH_SIZES


@pytest.fixture
def folder(tmp_path):
    write_server_files(tmp_path, "mine")
    return tmp_path


def test_the_server_reads_the_files(folder):
    files = {name: (folder / name).read_text() for name in SERVER_FILES}
    # Numbers are wrapped in a message.
    batching, monitoring = (
        dict(re.findall(r"^ *(\w+)(?: \{ value|): \"?([^\"\s]+)", files[name], re.M))
        for name in ("batching_parameters.txt", "monitoring.config")
    )

    parsed = text_format.Parse(files["models.config"], ModelServerConfig())

    (model,) = parsed.model_config_list.config
    assert (model.name, model.model_platform) == ("mine", "tensorflow")
    assert model.base_path == "/models/mine"
    # Nothing is compiled for a shape; to an allowed size batches are filled up.
    assert "allowed_batch_sizes" not in batching
    assert int(batching["max_batch_size"]) == max(WARMUP_BATCH_SIZES)
    assert monitoring["enable"] == "true"
    assert monitoring["path"] in files["README.md"]


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
