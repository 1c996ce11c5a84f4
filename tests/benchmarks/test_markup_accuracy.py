"""Tests of `benchmarks.markup_accuracy`."""

from benchmarks import markup_accuracy
from tests.helpers.error_capture import refusal


def test_tags_are_measured_on_a_model_of_the_grammar_alone(export_dir, capsys):
    arguments = ["--export-dir", export_dir, "--sentences", 3]
    line = refusal(capsys, markup_accuracy.main, arguments)

    assert "translates none of 3 sentences" in line
