import pytest

from command_line.errors import UserError, exit_on_user_error, refuse_damage


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UserError("wanted this, got that"), "wanted this, got that"),
        (PermissionError(13, "Denied", "there"), "Denied: there"),
        # Libraries raise some without a number.
        (OSError("Cannot parse file x\nand more"), "Cannot parse file x"),
        (OSError(28, "No space left on device"), "No space left on device"),
        # TensorFlow's own.
        (
            RuntimeError("x; No space left on device [op]"),
            "No space left on device; what was there is kept",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(capsys, error, message):
    with pytest.raises(SystemExit, match="2"), exit_on_user_error():
        raise error
    assert capsys.readouterr().err == f"error: {message}\n"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (IndexError("two\nlines"), "there must be whole. Received: IndexError: two"),
        (KeyError(), "there must be whole. Received: KeyError: "),
        (UserError("ours"), "ours"),
        (
            ValueError("Op type not registered 'TextOp' in binary\n"),
            "there needs an op that is not here: take the tensorflow and "
            "tensorflow-text that it was written with. Received: Op type not "
            "registered 'TextOp' in binary",
        ),
    ],
)
def test_damage_is_one_line_whatever_a_library_raises(error, message):
    with pytest.raises(UserError) as found, refuse_damage("there"):
        raise error

    assert str(found.value) == message


def test_a_fault_of_ours_keeps_its_traceback():
    with pytest.raises(RuntimeError, match="ours"), exit_on_user_error():
        raise RuntimeError("ours")
