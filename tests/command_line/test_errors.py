"""Tests of `command_line.errors`."""

import pytest

from command_line import errors
from command_line.errors import UserError, exit_on_user_error, refuse_damage


def leave_with(error):
    with pytest.raises(SystemExit) as exit_, exit_on_user_error():
        raise error
    return exit_.value.code


def test_a_mistake_is_one_line_and_exit_code_2(capsys):
    assert leave_with(UserError("wanted this, got that")) == 2
    assert capsys.readouterr().err == "error: wanted this, got that\n"


def test_a_refusal_of_the_file_system_names_the_file(capsys):
    assert leave_with(PermissionError(13, "Permission denied", "there")) == 2
    assert capsys.readouterr().err == "error: Permission denied: there\n"


def test_a_refusal_without_a_number_keeps_its_text(capsys):
    assert leave_with(OSError("Cannot parse file x\nand more")) == 2
    assert capsys.readouterr().err == "error: Cannot parse file x\n"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (IndexError("two\nlines"), "there must be whole. Received: IndexError: two"),
        (KeyError(), "there must be whole. Received: KeyError: "),
        (UserError("ours"), "ours"),
    ],
)
def test_damage_is_one_line_whatever_a_library_raises(error, message):
    with pytest.raises(UserError) as found, refuse_damage("there"):
        raise error

    assert str(found.value) == message


def test_an_op_that_is_not_here_is_no_damage():
    unknown = ValueError("Op type not registered 'TextOp' in binary\n")

    with pytest.raises(UserError) as found, refuse_damage("there"):
        raise unknown

    message = str(found.value)
    assert message.startswith("there needs an op that is not here: take the ")
    assert message.endswith("Op type not registered 'TextOp' in binary")


@pytest.mark.parametrize("error", [UserError("ours"), OSError("theirs")])
def test_debug_shows_the_traceback_above_the_line(capsys, monkeypatch, error):
    monkeypatch.setattr(errors, "shows_tracebacks", True)

    assert leave_with(error) == 2

    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last == f"error: {error}"


def test_a_full_disk_is_told_however_it_comes(capsys):
    assert leave_with(OSError(28, "No space left on device")) == 2
    assert leave_with(RuntimeError("x; No space left on device [op]")) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all("No space left on device" in line for line in lines)


def test_a_fault_of_ours_keeps_its_traceback():
    with pytest.raises(RuntimeError, match="ours"), exit_on_user_error():
        raise RuntimeError("ours")
