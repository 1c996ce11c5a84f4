"""Small random models of each kind that CTranslate2 computes."""

import keras
import numpy as np

from keras_transformer import Transformer

MODELS = {
    "post-norm, d_k > d_v": {},
    "pre-norm, d_k < d_v, gelu": {
        "norm": "pre",
        "key_dim": 3,
        "value_dim": 8,
        "activation": "gelu",
    },
    "learned positions, wide heads": {
        "positions": "learned",
        "key_dim": 12,
        "value_dim": 12,
    },
    "padded vocabulary, narrow heads": {
        "vocabulary_size": 337,
        "key_dim": 2,
        "value_dim": 3,
    },
    "of other systems": {
        "num_layers": 1,
        "decoder_layers": 2,
        "use_bias": True,
        "activation": "swish",
        "scale_embedding": False,
        "logits_bias": True,
        "max_wavelength": 3_000.0,
        "norm_epsilon": 1e-3,
        "source_vocabulary_size": 333,
        "tied_output": False,
        "position_offset": 2,
    },
}


def make_model(**changes):
    arguments = {
        "vocabulary_size": 330,
        "num_layers": 2,
        "hidden_dim": 16,
        "intermediate_dim": 24,
        "num_heads": 2,
        "key_dim": 8,
        "value_dim": 4,
        "sequence_length": 40,
    }
    keras.utils.set_random_seed(8)
    model = Transformer.from_preset("base", **{**arguments, **changes})
    model.build()
    random = np.random.default_rng(1)
    for weight in model.weights:  # No gain of one and no bias of zero.
        noise = 0.2 * random.normal(size=weight.shape)
        weight.assign(weight + noise)
    return model
