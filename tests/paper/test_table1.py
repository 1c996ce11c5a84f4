"""Tests of `paper.table1`."""

import pytest

from paper import graph_flops, table1


@pytest.mark.slow
def test_growth_is_measured_along_both_axes(capsys):
    table1.run(table1.Sizes((8, 16), 4, (4, 6), 8, radius=2, repetitions=1))

    rows, exponents = capsys.readouterr().out.split("\n\n")
    # Four sizes, four layers, forward and with the gradient.
    assert len(rows.splitlines()) == 2 + 4 * 4 * 2
    assert "| restricted | gradient | O(r n d) | 1 | 1.00 |" in exponents


@pytest.mark.parametrize("kind", ["self-attention", "restricted"])
def test_the_products_of_attention_are_those_of_its_graph(kind):
    sizes = table1.Sizes(radius=4)
    row = {"kind": kind, "n": 40, "d": 8, "direction": "forward"}
    call = table1.make_call(row, sizes)

    graph = call.get_concrete_function().graph
    found = graph_flops.count_flops(graph)

    assert found == 2 * table1.count_products(row, sizes)


def test_the_exponent_of_a_growth_is_found():
    rows = [{"n": n, "seconds": 3e-6 * n**1.5} for n in (1, 64, 128, 256)]
    rows[0]["seconds"] = 1.0  # A call's own cost hides that of so little.

    assert table1.fit(rows, "n", "seconds") == pytest.approx(1.5)
