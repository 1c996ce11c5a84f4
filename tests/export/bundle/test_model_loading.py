"""Tests of the errors of `export.bundle.model_loading`."""

import types

import keras
import pytest

from command_line.errors import UserError
from export.bundle import model_loading


def test_refuses_a_model_that_is_not_a_transformer(tmp_path):
    with pytest.raises(UserError, match="hold a Transformer. Received: Seq"):
        model_loading.check_model(keras.Sequential(), tmp_path / "model.keras")


def test_refuses_a_signature_that_the_export_lacks(tmp_path, monkeypatch):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").touch()
    loaded = types.SimpleNamespace(signatures={"serving_default": None})
    monkeypatch.setattr(model_loading, "load_version", lambda folder: loaded)

    with pytest.raises(UserError, match=r"signature other; export .*/1$"):
        model_loading.load_translate(tmp_path, "other")
