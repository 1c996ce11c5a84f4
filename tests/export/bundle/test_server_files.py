"""Tests of `export.bundle.server_files`."""

import re

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory
from google.protobuf import text_format
from google.protobuf import wrappers_pb2

from command_line.errors import UserError
from export.bundle.layout import SERVER_FILES
from export.bundle.server_files import choose_name
from export.bundle.server_files import write_server_files
from export.bundle.warmup import BATCH_SIZES

# Of tensorflow/serving, where the package has no module for them:
# servables/tensorflow/session_bundle_config.proto, config/monitoring_config.
INT64 = ".google.protobuf.Int64Value"
FIELDS = {
    "BatchingParameters": {
        "max_batch_size": INT64,
        "batch_timeout_micros": INT64,
        "max_enqueued_batches": INT64,
        "num_batch_threads": INT64,
        "thread_pool_name": ".google.protobuf.StringValue",
        "allowed_batch_sizes": "repeated int64",
        "pad_variable_length_inputs": "bool",
    },
    "PrometheusConfig": {"enable": "bool", "path": "string"},
    "MonitoringConfig": {"prometheus_config": ".test.PrometheusConfig"},
}


@pytest.fixture
def folder(tmp_path):
    write_server_files(tmp_path, "mine")
    return tmp_path


def message_of(name):
    """Makes an empty message of `FIELDS`."""
    types = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="test.proto",
        package="test",
        dependency=[wrappers_pb2.DESCRIPTOR.name],
        syntax="proto3",
    )
    for message_name, fields in FIELDS.items():
        message = file.message_type.add(name=message_name)
        for number, (field_name, kind) in enumerate(fields.items(), start=1):
            *repeated, kind = kind.split()
            field = message.field.add(name=field_name, number=number)
            field.label = types.LABEL_REPEATED if repeated else 1
            if kind.startswith("."):
                field.type, field.type_name = types.TYPE_MESSAGE, kind
            else:
                field.type = getattr(types, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    descriptor = pool.FindMessageTypeByName(f"test.{name}")
    return message_factory.GetMessageClass(descriptor)()


def test_the_server_finds_the_model(folder):
    config = pytest.importorskip(
        "tensorflow_serving.config.model_server_config_pb2"
    )

    parsed = text_format.Parse(
        (folder / "models.config").read_text(), config.ModelServerConfig()
    )

    (model,) = parsed.model_config_list.config
    assert model.name == "mine"
    assert model.base_path == "/models/mine"
    assert model.model_platform == "tensorflow"


def test_batches_have_the_sizes_that_were_warmed_up(folder):
    parsed = text_format.Parse(
        (folder / "batching_parameters.txt").read_text(),
        message_of("BatchingParameters"),
    )

    # The server wants them to ascend, and to end in the largest.
    assert tuple(parsed.allowed_batch_sizes) == BATCH_SIZES
    assert sorted(set(BATCH_SIZES)) == [*BATCH_SIZES]
    assert parsed.max_batch_size.value == BATCH_SIZES[-1]
    assert parsed.num_batch_threads.value >= 1


def test_prometheus_finds_the_metrics(folder):
    parsed = text_format.Parse(
        (folder / "monitoring.config").read_text(),
        message_of("MonitoringConfig"),
    )

    assert parsed.prometheus_config.enable
    assert parsed.prometheus_config.path in (folder / "README.md").read_text()


def test_the_readme_names_what_is_there(folder):
    text = (folder / "README.md").read_text()

    for name in ("models.config", "monitoring.config"):
        assert f"_file=/models/mine/{name}" in text
    assert set(re.findall(r"[a-z_]+\.(?:config|txt)", text)) >= {
        *SERVER_FILES
    } - {"README.md"}
    assert "`1/assets.extra/bundle.json`, or a newer one" in text
    assert max(map(len, text.splitlines())) <= 80


def test_what_someone_changed_stays(folder):
    (folder / "models.config").write_text("changed")
    (folder / "README.md").unlink()

    write_server_files(folder, "other")

    assert (folder / "models.config").read_text() == "changed"
    assert (folder / "README.md").read_text().startswith("# other\n")
    assert {path.name for path in folder.iterdir()} == set(SERVER_FILES)


def test_the_name_is_that_of_the_folder(tmp_path, monkeypatch):
    (tmp_path / "en-de").mkdir()
    monkeypatch.chdir(tmp_path / "en-de")

    assert choose_name(tmp_path / "en-de", None) == "en-de"
    assert choose_name(tmp_path / "en-de" / ".." / "en-de", None) == "en-de"
    assert choose_name(tmp_path / "en-de", "other") == "other"


@pytest.mark.parametrize("name", ["a b", "a/b", "a:b", "é"])
def test_refuses_a_name_that_no_url_can_hold(tmp_path, name):
    with pytest.raises(UserError, match="--model-name must be of letters"):
        choose_name(tmp_path, name)
    with pytest.raises(UserError, match="Received: 'exports of mine'"):
        choose_name(tmp_path / "exports of mine", None)


def test_refuses_a_name_that_is_not_the_models(folder):
    with pytest.raises(UserError, match="must be mine, as in .*eceived: other"):
        choose_name(folder, "other")
    assert choose_name(folder, "mine") == "mine"
