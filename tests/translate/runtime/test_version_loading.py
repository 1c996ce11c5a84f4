"""Tests of the errors of `translate.runtime.version_loading`."""

import types

import pytest

from command_line.errors import UserError
from translate.runtime import version_loading


def test_refuses_a_signature_that_the_export_lacks(tmp_path, monkeypatch):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").touch()
    loaded = types.SimpleNamespace(signatures={"serving_default": None})
    loaders = {"saved_model.pb": lambda folder: loaded}
    monkeypatch.setattr(version_loading, "LOADERS", loaders)

    with pytest.raises(UserError, match=r"the signature other; .*/1$"):
        version_loading.load_translate(tmp_path, "other")
