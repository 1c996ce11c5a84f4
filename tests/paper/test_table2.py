"""Tests of `paper.table2`."""

import pytest

from keras_transformer import PRESETS
from paper import table2
from paper.table2 import hardware_flops, update_flops

TOY = PRESETS["tiny"].replace(
    num_layers=2,
    hidden_dim=10,
    intermediate_dim=14,
    num_heads=3,
    key_dim=5,
    value_dim=7,
)


def product(a, b, c):
    """Operations of `(a, b) x (b, c)`, forward and for both gradients.

    Each has `2 a b c`: of `(a, c) x (c, b)` and `(b, a) x (a, c)` too.
    """
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
    expected += product(positions, width, 1)  # The mean logit, for smoothing.

    counted = update_flops(TOY, pieces, rows, length)
    assert counted == expected


@pytest.mark.parametrize(
    ("name", "hours", "printed"), [("base", 12, 3.3e18), ("big", 84, 2.3e19)]
)
def test_the_papers_reckoning_gives_its_numbers(name, hours, printed):
    flops = hardware_flops(8, hours, 9.5e12)  # 8 P100.

    assert float(f"{flops:.1e}") == printed
    assert table2.HOURS[name] == hours
    assert table2.PRINTED[name] == printed


def show(capsys, *options):
    table2.main(options)
    return capsys.readouterr().out


def test_prints_both_reckonings(capsys, monkeypatch):
    # A model of these sizes takes long to make; the count has its own test.
    monkeypatch.setattr(table2, "update_flops", lambda *args: 10**13)

    text = show(capsys, "--preset", "big")
    assert "big: 300,000 updates of 1,000 pairs of sentences, 25" in text
    assert "8 GPUs, 84 hours, 9.5e+12 FLOP/s each | 2.3e+19 |" in text
    assert "| printed in Table 2 | 2.3e+19 |" in text
    assert "1e+13 an update | 3e+18 |" in text

    text = show(capsys, "--steps", "50000")
    assert "the paper: 8 GPUs, 6 hours" in text
    assert "| 1.6e+18 |" in text  # Half of 3.28e18.

    given = "--preset=c-n2 --hours=10 --gpus=2 --flops-per-second=6e12"
    text = show(capsys, *given.split())
    assert "given: 2 GPUs, 10 hours, 6e+12 FLOP/s each | 4.3e+17 |" in text

    # Its 12 hours say nothing of other hardware, or of other batches.
    for option in ("--preset=c-n2", "--gpus=1", "--batch-tokens=5000"):
        text = show(capsys, option)
        assert "no time for " in text
        assert "FLOP/s each" not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "bse"], "--preset must be one of base"),
        (["--length", "9", "--batch-tokens", "8"], "must not be above"),
        (["--train-source", "x"], "unrecognized arguments: --train-source"),
    ],
)
def test_refuses_what_it_cannot_count(capsys, options, message):
    with pytest.raises(SystemExit) as exit_:
        show(capsys, *options)

    assert exit_.value.code == 2
    assert message in capsys.readouterr().err
