"""The SavedModel behind the interface of TF Serving, under load."""

import json

import pytest

from tests.load import main


@pytest.mark.slow
def test_many_clients_get_right_answers_in_bounded_memory(export_dir, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--export-dir", str(export_dir), "--minutes", "0.1", "--texts", "12"])

    report = json.loads(capsys.readouterr().out)
    assert not ended.value.code, report
    assert report["errors"] == report["wrong"] == 0
    assert report["requests"] >= 8
    # Eight clients, and four copies of the numbers of given pairs, 2^26, in each
    # request, and as much for its texts.
    assert report["before_mib"] < report["peak_mib"] < report["before_mib"] + 8 * 2048
