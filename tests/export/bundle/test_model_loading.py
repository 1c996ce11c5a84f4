"""Tests of the errors of `export.bundle.model_loading`."""

import keras
import pytest

from command_line.errors import UserError
from export.bundle import model_loading


def test_refuses_a_model_that_is_not_a_transformer(tmp_path):
    with pytest.raises(UserError, match="hold a Transformer. Received: Seq"):
        model_loading.check_model(keras.Sequential(), tmp_path / "model.keras")
