"""How a command says no."""

import pytest


def refusal(capsys, main, arguments):
    """Returns the one line with which a command ends in exit code 2."""
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    lines = capsys.readouterr().err.splitlines()
    assert exit_.value.code == 2
    assert len(lines) == 1
    return lines[0]
