"""Progress on a terminal."""

import sys

import pytest

from command_line import progress


@pytest.fixture
def shown(monkeypatch, capsys):
    """Counts ten items that take no time, and returns what was written."""

    def show(is_terminal, seconds):
        monkeypatch.setattr(progress, "SECONDS_BEFORE_THE_FIRST", seconds)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
        items = list(progress.show_progress(iter(range(10)), 10, "request"))
        assert items == [*range(10)]
        captured = capsys.readouterr()
        assert not captured.out
        return captured.err

    return show


def test_a_terminal_shows_the_share_and_the_unit(shown):
    assert "10/10" in shown(is_terminal=True, seconds=0)


def test_a_pipe_gets_nothing(shown):
    assert not shown(is_terminal=False, seconds=0)


def test_a_short_command_shows_nothing(shown):
    assert not shown(is_terminal=True, seconds=5)
