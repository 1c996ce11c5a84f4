"""An export whose explanations several files read."""

import pytest

from tests.helpers.example_sentences import TEXT_WITH_MARKUP
from translate.loading import load_export
from translate.report.explanation_page import describe_translation


@pytest.fixture(scope="session")
def export_runtime(export_dir):
    return load_export(export_dir)


@pytest.fixture(scope="session")
def ask(export_runtime):
    return export_runtime.ask_one


@pytest.fixture(scope="session")
def data(ask):
    return describe_translation(ask, TEXT_WITH_MARKUP.encode())
