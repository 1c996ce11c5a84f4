import pytest

from keras_transformer import PRESETS, Transformer
from keras_transformer.presets import find_preset


def count_parameters(architecture, vocabulary_size):
    width, inner = architecture.hidden_dim, architecture.intermediate_dim
    heads = architecture.num_heads * (architecture.key_dim + architecture.value_dim)
    attention, norm = 2 * width * heads, 2 * width
    feed_forward = 2 * width * inner + inner + width
    encoder = architecture.num_layers * (attention + feed_forward + 2 * norm)
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    decoder = architecture.num_decoder_layers * decoder_layer
    final_norms = 2 * norm * (architecture.norm == "pre")
    return encoder + decoder + final_norms + vocabulary_size * width


def test_the_count_is_that_of_a_model():
    architecture = PRESETS["tiny"].architecture
    model = Transformer(50, architecture, 11)
    model.build()
    assert count_parameters(architecture, 50) == model.count_params()


# What a row of Table 3 changes of base, and nothing else; and the parameters that
# it prints, in millions. The vocabulary is not in the paper: one of 41,100 gives
# all of its numbers but that of the big model, which needs 36,000.
TABLE_3 = {
    "base": ({}, 65),
    "a-h1": ({"num_heads": 1, "key_dim": 512, "value_dim": 512}, None),
    "a-h4": ({"num_heads": 4, "key_dim": 128, "value_dim": 128}, None),
    "a-h16": ({"num_heads": 16, "key_dim": 32, "value_dim": 32}, None),
    "a-h32": ({"num_heads": 32, "key_dim": 16, "value_dim": 16}, None),
    "b-dk16": ({"key_dim": 16}, 58),
    "b-dk32": ({"key_dim": 32}, 60),
    "c-n2": ({"num_layers": 2}, 36),
    "c-n4": ({"num_layers": 4}, 50),
    "c-n8": ({"num_layers": 8}, 80),
    "c-d256": ({"hidden_dim": 256, "key_dim": 32, "value_dim": 32}, 28),
    "c-d1024": ({"hidden_dim": 1024, "key_dim": 128, "value_dim": 128}, 168),
    "c-ff1024": ({"intermediate_dim": 1024}, 53),
    "c-ff4096": ({"intermediate_dim": 4096}, 90),
    "d-drop0.0": ({"dropout": 0.0}, None),
    "d-drop0.2": ({"dropout": 0.2}, None),
    "d-ls0.0": ({"label_smoothing": 0.0}, None),
    "d-ls0.2": ({"label_smoothing": 0.2}, None),
    "e-learned": ({"positions": "learned"}, None),
    "big": (
        {"hidden_dim": 1024, "intermediate_dim": 4096, "num_heads": 16}
        | {"dropout": 0.3, "steps": 300_000},
        213,
    ),
}


@pytest.mark.parametrize("name", TABLE_3)
def test_a_row_is_that_of_table_3(name):
    changes, millions = TABLE_3[name]
    base, row = (PRESETS["base"].hyperparameters(), PRESETS[name].hyperparameters())
    count = count_parameters(
        PRESETS[name].architecture, 36_000 if name == "big" else 41_100
    )

    letter = name[0].upper() if "-" in name else name
    assert PRESETS[name].description == f"Table 3, row {letter}"
    assert {k: v for k, v in row.items() if v != base[k]} == changes
    assert millions in (None, round(count / 1e6))


def test_base_is_that_of_the_paper():
    base = PRESETS["base"].hyperparameters()
    paper = {"num_layers": 6, "hidden_dim": 512, "intermediate_dim": 2048}
    paper |= {"num_heads": 8, "key_dim": 64, "value_dim": 64, "dropout": 0.1}
    paper |= {"label_smoothing": 0.1, "steps": 100_000, "warmup_steps": 4_000}
    paper |= {"positions": "sine", "norm": "post", "activation": "relu"}
    paper |= {"scale_embedding": True, "tied_output": True, "max_wavelength": 10_000}
    # Of the authors' code.
    paper |= {"norm_epsilon": 1e-6, "use_bias": False, "decoder_mixer": "attention"}

    assert paper.items() <= base.items()
    # All that it does not have is off.
    assert not any(base[name] for name in base.keys() - paper)


@pytest.mark.parametrize(
    ("name", "nearest"), [("Base", "base"), ("c-d512", "c-d1024"), (None, "")]
)
def test_refuses_an_unknown_name_and_offers_the_nearest(name, nearest):
    with pytest.raises(ValueError, match=f"preset={name!r}.*nearest is '{nearest}"):
        find_preset(name)
