"""Progress on a terminal."""

import sys

import pytest

from command_line import progress


@pytest.mark.parametrize(
    ("is_terminal", "seconds", "shown"),
    [(True, 0, True), (False, 0, False), (True, 5, False)],
)
def test_a_terminal_shows_a_long_command(
    monkeypatch, capsys, is_terminal, seconds, shown
):
    monkeypatch.setattr(progress, "SECONDS_BEFORE_THE_FIRST", seconds)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)

    assert [*progress.show_progress(iter(range(10)), 10, "request")] == [*range(10)]

    captured = capsys.readouterr()
    assert not captured.out
    assert ("10/10" in captured.err) == shown
    assert shown or not captured.err
