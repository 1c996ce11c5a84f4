"""Small random models of each kind that CTranslate2 computes."""

import ctranslate2
import keras
import numpy as np

from keras_transformer import Transformer

MODELS = {
    "post-norm, d_k > d_v": {},
    "pre-norm, d_k < d_v, gelu": {"norm": "pre", "key_dim": 3, "value_dim": 8}
    | {"activation": "gelu"},
    "learned positions, wide heads": {"positions": "learned"}
    | {"key_dim": 12, "value_dim": 12},
    "padded vocabulary, narrow heads": {"vocabulary_size": 337}
    | {"key_dim": 2, "value_dim": 3},
    "of other systems": {
        **{"num_layers": 1, "decoder_layers": 2, "use_bias": True},
        **{"activation": "swish", "scale_embedding": False, "logits_bias": True},
        **{"max_wavelength": 3_000.0, "norm_epsilon": 1e-3, "position_offset": 2},
        **{"source_vocabulary_size": 333, "tied_output": False},
    },
}


def make_model(**changes):
    arguments = {
        **{"vocabulary_size": 330, "num_layers": 2, "sequence_length": 40},
        **{"hidden_dim": 16, "intermediate_dim": 24},
        **{"num_heads": 2, "key_dim": 8, "value_dim": 4},
    }
    keras.utils.set_random_seed(8)
    model = Transformer.from_preset("base", **{**arguments, **changes})
    model.build()
    random = np.random.default_rng(1)
    for weight in model.weights:  # No gain of one and no bias of zero.
        noise = 0.2 * random.normal(size=weight.shape)
        weight.assign(weight + noise)
    return model


def write_directory(
    folder,
    vocabularies,
    positions="halves",
    tied=True,
    pre_norm=False,
    scale=True,
    start="<s>",
    bias=True,
    precision=None,
    change=None,
):
    """Writes a random model by CTranslate2's own specification, which `change` gets.

    `positions` are `"halves"` (sines from position 2 on), `"learned"`, or `None` for
    those that CTranslate2 computes itself; targets begin with the piece `start`;
    attention has a `bias`.
    """
    random = np.random.default_rng(6)
    width, inner = 16, 24
    spec = ctranslate2.specs.TransformerSpec.from_config((2, 1), 2, pre_norm=pre_norm)
    table = random.normal(size=(64, width))
    if positions == "halves":
        half = width // 2
        rates = 1e4 ** -(np.arange(half) / (half - 1))
        angles = np.arange(2, 66)[:, None] * rates
        table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    embeddings = [
        random.normal(size=(len(pieces), width)) / 3 for pieces in vocabularies
    ]
    for stack in (spec.encoder, spec.decoder):
        stack.scale_embeddings = scale
        if positions is not None:
            stack.position_encodings.encodings = table.astype("float32")
    fill(spec, random, width, inner, bias)
    spec.encoder.embeddings[0].weight = embeddings[0].astype("float32")
    spec.decoder.embeddings.weight = embeddings[1].astype("float32")
    output = embeddings[1] if tied else random.normal(size=embeddings[1].shape)
    spec.decoder.projection.weight = output.astype("float32")
    spec.register_source_vocabulary(vocabularies[0])
    spec.register_target_vocabulary(vocabularies[1])
    spec.config.decoder_start_token = start
    if change is not None:
        change(spec)
    spec.validate()
    spec.optimize(precision)
    spec.save(str(folder))


def fill(spec, random, width, inner, bias):
    """Fills in random weights of the layers."""

    def linear(part, rows, columns, bias=True):
        part.weight = random.normal(size=(rows, columns)) * columns**-0.5
        part.weight = part.weight.astype("float32")
        if bias:
            part.bias = (0.3 * random.normal(size=rows)).astype("float32")

    def norm(part):
        part.gamma = (1 + 0.3 * random.normal(size=width)).astype("float32")
        part.beta = (0.3 * random.normal(size=width)).astype("float32")

    for stack in (spec.encoder, spec.decoder):
        if hasattr(stack, "layer_norm"):
            norm(stack.layer_norm)
        for layer in stack.layer:
            linear(layer.ffn.linear_0, inner, width)
            linear(layer.ffn.linear_1, width, inner)
            norm(layer.ffn.layer_norm)
            linear(layer.self_attention.linear[0], 3 * width, width, bias)
            linear(layer.self_attention.linear[1], width, width, bias)
            norm(layer.self_attention.layer_norm)
            if stack is spec.decoder:
                linear(layer.attention.linear[0], width, width, bias)
                linear(layer.attention.linear[1], 2 * width, width, bias)
                linear(layer.attention.linear[2], width, width, bias)
                norm(layer.attention.layer_norm)


class SmallSpec(ctranslate2.specs.ModelSpec):
    """Two tensors, one of which is stored in 8 bits, and an option."""

    def __init__(self):
        super().__init__()
        self.table = np.arange(12, dtype="float32").reshape(3, 4)
        self.weight = np.arange(12, dtype="float32").reshape(3, 4) + 1
        self.weight_scale = ctranslate2.specs.model_spec.OPTIONAL
        self.option = np.int16(2)

    @property
    def name(self):
        return "TransformerSpec"


def write_model_bin(path):
    """Writes a small file in the format of `model.bin`."""
    spec = SmallSpec()
    spec.validate()
    spec.optimize("int8")
    spec.save(str(path.parent))
    (path.parent / "model.bin").rename(path)
