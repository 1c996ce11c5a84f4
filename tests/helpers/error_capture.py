"""Captures the one-line error of a command."""

import pytest


def refusal(capsys, main, arguments):
    """Returns the one line with which a command ends in exit code 2.

    Above it stands nothing but argparse's usage.
    """
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    *above, line = capsys.readouterr().err.splitlines()
    assert exit_.value.code == 2
    assert not above or above[0].startswith("usage: ")
    return line
