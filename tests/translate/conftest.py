"""Fixtures of the tests of `export`."""

import pytest

from tests.helpers.error_capture import refusal
from tests.helpers.example_sentences import REFERENCE, TEXT_WITH_MARKUP
from translate import explain
from translate.report.explanation_page import describe_translation


@pytest.fixture(scope="module")
def ask(export_dir):
    return explain.load_ask(export_dir)


@pytest.fixture(scope="module")
def data(ask):
    return describe_translation(ask, TEXT_WITH_MARKUP.encode(), REFERENCE.encode())


@pytest.fixture
def refused(capsys):
    """Function that returns the line in which a command refuses options."""

    def run(command, *options):
        return refusal(capsys, command.main, options)

    return run
