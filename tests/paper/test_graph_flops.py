from keras_transformer import PRESETS
from paper.graph_flops import update_flops

TOY = PRESETS["tiny"].replace(
    num_layers=2,
    hidden_dim=10,
    intermediate_dim=14,
    num_heads=3,
    key_dim=5,
    value_dim=7,
)


def product(a, b, c):
    """Operations of `(a, b) x (b, c)` and of both gradients: `2 a b c` each."""
    return 3 * 2 * a * b * c


def test_the_graph_holds_the_products_of_the_formulas():
    rows, length, width, pieces = 8, 13, 10, 50
    positions = rows * length
    attention = (
        2 * product(positions, width, 3 * 5)  # Queries and keys.
        + product(positions, width, 3 * 7)  # Values.
        + rows * 3 * product(length, 5, length)  # Scores.
        + rows * 3 * product(length, length, 7)  # Weighted means.
        + product(positions, 3 * 7, width)  # Output.
    )
    feed_forward = product(positions, width, 14) + product(positions, 14, width)
    # Two layers each: an encoder layer, a decoder layer with two attentions.
    expected = 2 * (3 * attention + 2 * feed_forward)
    expected += product(positions, width, pieces)  # Logits.

    counted = update_flops(TOY, pieces, rows, length)
    assert counted == expected
