"""Tests of the errors of `export.bundle.model_loading`."""

import keras
import numpy as np
import pytest

from command_line.errors import UserError
from export.bundle import model_loading
from tests.helpers.ctranslate2_models import make_model
from tests.helpers.custom_models import CustomOutputModel


def test_refuses_a_model_that_is_not_a_transformer(tmp_path):
    with pytest.raises(UserError, match="hold a Transformer. Received: Seq"):
        model_loading.check_model(keras.Sequential(), tmp_path / "model.keras")


def test_another_precision_keeps_the_class():
    architecture = make_model(num_layers=1).architecture
    model = CustomOutputModel(30, architecture, 9)
    model.build()

    found = model_loading.with_dtype(model, "bfloat16")

    assert type(found) is CustomOutputModel
    assert found.embedding.embeddings.dtype == "bfloat16"
    np.testing.assert_array_equal(found.head.kernel, model.head.kernel)
