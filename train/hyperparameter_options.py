"""Options of `python -m train` that replace the numbers of a preset."""

import dataclasses

from command_line.options import option, positive
from keras_transformer import PRESETS

HYPERPARAMETER_HELP = {
    "num_layers": "layers of each stack, N",
    "hidden_dim": "features of a position, d_model",
    "intermediate_dim": "inner features of the feed-forward network, d_ff",
    "num_heads": "attention heads, h",
    "key_dim": "features of a head's queries and keys, d_k",
    "value_dim": "features of a head's values, d_v",
    "dropout": "share of the features dropped in training, P_drop",
    "attention_dropout": "share of the attention weights dropped in training",
    "feed_forward_dropout": "share of the inner features of the feed-forward "
    "network dropped in training",
    "positions": "position vectors, sine or learned",
    "norm": "layer normalization after or before a sub-layer, post or pre",
    "decoder_layers": "layers of the decoder, if not as many as the encoder's",
    "activation": "of the feed-forward network: relu, gelu or swish",
    "decoder_mixer": "attention, or ssru, a recurrence, in the decoder",
    "label_smoothing": "probability of the wrong tokens together",
    "steps": "updates",
    "warmup_steps": "updates in which the learning rate rises",
}


def make_hyperparameter_options() -> type:
    """Makes the dataclass of options that replace numbers of a preset."""
    fields = []
    for name, value in PRESETS["base"].hyperparameters().items():
        if name not in HYPERPARAMETER_HELP:  # Converted models have the others.
            continue
        kind = int if value is None else type(value)
        updates = name in ("steps", "warmup_steps")
        declared = option(
            None,
            HYPERPARAMETER_HELP[name] + ("" if value is None else f" (base: {value})"),
            kind=positive(int) if updates else kind,
            metavar=kind.__name__,
            tags=("not compared",),
        )
        fields.append((name, kind | None, declared))
    return dataclasses.make_dataclass("HyperparameterOptions", fields, frozen=True)


HyperparameterOptions = make_hyperparameter_options()
