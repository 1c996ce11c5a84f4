import pytest

from paper import table2
from tests.helpers.error_capture import refusal


@pytest.mark.parametrize("name", ["base", "big"])
def test_the_papers_estimate_gives_its_numbers(name):
    flops = table2.hardware_flops(table2.HOURS[name])

    assert float(f"{flops:.1e}") == table2.PRINTED[name]


def test_prints_both_estimates(capsys, monkeypatch):
    # A model of these sizes takes long to make; the count has its own test.
    monkeypatch.setattr(table2, "update_flops", lambda *args: 10**13)

    table2.main(["--preset", "big"])
    text = capsys.readouterr().out
    assert text.count("| 2.3e+19 |") == 2
    assert "1e+13 an update | 3e+18 |" in text
    table2.main(["--preset=c-n2"])
    assert "the paper" not in capsys.readouterr().out


def test_refuses_an_unknown_preset(capsys):
    line = refusal(capsys, table2.main, ["--preset", "bse"])
    assert "--preset must be one of base" in line
