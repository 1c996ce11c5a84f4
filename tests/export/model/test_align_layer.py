"""The layer that `align` shows is the one that was asked for."""

import numpy as np

from export.bundle.model_loading import load_run
from export.model.search import SearchSettings


def test_aligns_by_the_layer_that_was_asked_for(run_dir):
    settings = SearchSettings(align_layer=0)
    names = ("align", "explain")
    asked = load_run(run_dir, settings, signatures=names).signatures
    pair = np.array([b"a blue dog"]), np.array([b"dog blue a"])

    aligned = asked["align"](*pair)["attention"]
    layers = asked["explain"](*pair)["encoder_decoder_attention"]

    expected = np.mean(layers[0, 0], axis=0)
    np.testing.assert_allclose(aligned[0], expected, atol=1e-6)
    assert np.abs(layers[0, 0] - layers[0, 1]).max() > 1e-3
