"""A plain C program, without Python, serves the SavedModel."""

from tests.helpers.example_sentences import SENTENCES
from tests.helpers.serving_smoke import compile_program


def test_a_program_without_python_translates(export_dir, translate, tmp_path):
    text = [*SENTENCES, "", "ñandú 🐈"]

    lines = compile_program(tmp_path)(export_dir / "1", text)

    expected = translate(text)["translation"]
    assert lines == expected.tolist()
    assert len(set(expected)) > 3
