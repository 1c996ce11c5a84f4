"""Services that several files ask."""

import pytest

from tests.helpers import service_client


@pytest.fixture(scope="session", autouse=True)
def configured_logging():
    """Uvicorn's logging, before a test captures standard error.

    It closes absl's handler, which closes any standard error but the present.
    """
    from serve.__main__ import make_config

    make_config(None)


@pytest.fixture(scope="session")
def model(export_dir):
    """The export with all signatures, as a service holds it."""
    from translate.loading import load_export

    runtime = load_export(export_dir)
    runtime.probe()
    return runtime


@pytest.fixture(scope="session")
def service(model):
    """That model behind HTTP, from English to Spanish."""
    with service_client.serve({("en", "es"): model}) as service:
        yield service
