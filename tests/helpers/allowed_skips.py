"""Pytest hooks that fail the run on a skip whose reason is not listed."""

import importlib.util
import shutil
import sysconfig

import pytest

# How the reasons begin for which a test may be skipped; any other fails the
# run. Those of peers do, too, where `make peers` has set them up.
PEER_REASON = "needs a peer of `make peers`: "
ALLOWED_REASONS = (
    PEER_REASON,
    f"{PEER_REASON}chromium",  # There is not always an apt-get to bring it,
    f"{PEER_REASON}caddy",  # or this.
    f"{PEER_REASON}npm",  # Nor Node.js, nor the network to its registry.
    "needs Linux",
)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skips a test marked `peers` where one of them is not installed."""
    for marker in item.iter_markers("peers"):
        for name in marker.args:
            if not (importlib.util.find_spec(name) or find_program(name)):
                pytest.skip(PEER_REASON + name)


def find_program(name):
    """Returns the path of a program of this environment or of the system, or `None`."""
    scripts = sysconfig.get_path("scripts")
    return shutil.which(name, path=scripts) or shutil.which(name)


def pytest_sessionfinish(session):
    """Fails the run if a test was skipped for a reason that is not listed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}  # A worker has no reporter.
    allowed = ALLOWED_REASONS
    if session.config.option.markexpr == "peers":
        allowed = allowed[1:]
    for report in stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(allowed):
            reporter.write_line(f"\nmay not be skipped: {reason}", red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
