"""Keeps `benchmarks.service_load` alive, at toy size."""

import json

import pytest

from benchmarks import service_load
from tests.helpers.example_sentences import SENTENCES


@pytest.fixture
def arguments(export_dir, tmp_path):
    path = tmp_path / "sentences"
    path.write_text("".join(f"{text}\n" for text in SENTENCES))
    return [f"--export-dir={export_dir}", f"--input={path}"]


@pytest.mark.slow
def test_the_service_answers_as_the_plain_loop(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        service_load.main([*arguments, "--minutes=0.05", "--clients=3"])

    report = json.loads(capsys.readouterr().out)
    assert not ended.value.code, report
    for load in (report["plain_loop"], *report["service"].values()):
        assert load["requests"] > 0
        assert 0 < load["p50_ms"] <= load["p99_ms"]
    assert len(report["memory_mib"]) == 3


@pytest.mark.slow
def test_latencies_are_measured_beside_another_client(arguments, capsys):
    with pytest.raises(SystemExit):
        service_load.main([*arguments, "--latency=0.5"])

    report = json.loads(capsys.readouterr().out)
    assert list(report) == [
        *("one_client", "two_clients"),
        *("beside_html", "beside_long_text", "beside_many_requests"),
    ]
    loads = [load for measured in report.values() for load in measured.values()]
    assert len(loads) == 8
    assert all(load["requests"] and not load["problems"] for load in loads)
