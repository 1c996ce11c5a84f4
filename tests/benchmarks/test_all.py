"""Measurements run once, and become Markdown."""

import json

import pytest

from benchmarks import all as measuring
from command_line.errors import UserError
from tests.helpers.error_capture import refusal

PRINT = "python -c \"print('$D')\""
TABLE = "python -c 'print(\"| a |\\n|---|\\n| 1 |\")'"
MEASUREMENTS = f"""
lines = '''
@python -c pass
{PRINT}
'''
table = '''
{TABLE}
'''
"""


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Returns a function that runs the command, and returns its results."""
    monkeypatch.setattr(measuring, "MEASUREMENTS", tmp_path / "measurements")
    monkeypatch.setattr(measuring, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(measuring, "ROOT", tmp_path)
    monkeypatch.setattr(measuring, "check_conditions", lambda: None)
    monkeypatch.setattr(measuring, "git", lambda *_: "abc1234")
    (tmp_path / "measurements").write_text(MEASUREMENTS)

    def run(*argv):
        try:
            measuring.main(argv)
        finally:
            found = json.loads(measuring.RESULTS.read_text())
        return found

    return run


def test_output_is_kept_until_the_code_changes(results, monkeypatch):
    monkeypatch.setenv("D", "/corpus")

    silent, printed = results("lines")["lines"]["commands"]
    assert (silent["command"], silent["output"]) == ("python -c pass", "")
    assert (printed["command"], printed["output"]) == (PRINT, "/corpus\n")

    monkeypatch.setenv("D", "/after")
    assert results("lines")["lines"]["commands"][1]["output"] == "/corpus\n"
    monkeypatch.setattr(measuring, "git", lambda *_: "def5678")
    assert results("lines")["lines"]["commands"][1]["output"] == "/after\n"


def test_what_fails_leaves_the_others(results, monkeypatch, capfd):
    monkeypatch.delenv("D", raising=False)

    with pytest.raises(SystemExit):
        results()

    error = capfd.readouterr().err
    assert "D: unbound variable" in error
    assert "must succeed. Received: status " in error
    assert error.endswith("Received: failures of lines\n")
    found = json.loads(measuring.RESULTS.read_text())
    # The command before the one that failed is not run again.
    assert len(found["lines"]["commands"]) == 1
    assert found["table"]["commands"][0]["output"]
    shown = measuring.describe_results("table", measuring.RESULTS)
    assert " minutes in all" in shown
    # A command that resumes after an interruption takes less time.
    monkeypatch.setenv("D", "/corpus")
    results()
    shown = measuring.describe_results("lines", measuring.RESULTS)
    assert " minutes in all" not in shown


def test_pages_show_commands_with_their_output(results, monkeypatch):
    monkeypatch.setenv("D", "/corpus")
    results()

    shown = measuring.describe_results("lines", measuring.RESULTS)
    assert shown.startswith(
        f"```\npython -c pass\n{PRINT}\n```\n\n```\n/corpus\n```\n\n*"
    )
    assert "commit abc1234" in shown
    shown = measuring.describe_results("table", measuring.RESULTS)
    assert "\n\n| a |\n|---|\n| 1 |\n\n*" in shown
    found = json.loads(measuring.RESULTS.read_text())
    del found["lines"]["commands"][-1]
    measuring.RESULTS.write_text(json.dumps(found))
    shown = measuring.describe_results("lines", measuring.RESULTS)
    assert shown == f"```\npython -c pass\n{PRINT}\n```\n\n*Not measured.*"


def test_refuses_an_unknown_name(capsys):
    assert "Received: nothing" in refusal(capsys, measuring.main, ["nothing"])


@pytest.mark.parametrize(
    ("load", "changes", "message"),
    [(0.1, " M train/fit.py", "changes of train/fit.py"), (1.9, "", "a load of 1.9")],
)
def test_refuses_conditions_that_change_figures(monkeypatch, load, changes, message):
    monkeypatch.setattr(measuring.os, "getloadavg", lambda: (load, 0, 0))
    monkeypatch.setattr(measuring, "git", lambda *_: changes)

    with pytest.raises(UserError, match=message):
        measuring.check_conditions()
