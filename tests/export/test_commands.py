"""Ways through the commands of `export` that no part shows alone."""

import json

import numpy as np
import pytest

import export.__main__ as export_command
from export import check
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.fake_servable import Servable
from tests.helpers.signature_requests import ask, sample_inputs


@pytest.mark.slow
def test_an_export_in_bfloat16_serves_and_passes_its_check(
    run_dir, export_dir, servable, tmp_path, capsys
):
    options = [f"--run-dir={run_dir}", f"--export-dir={tmp_path}", "--beam-size=3"]
    export_command.main([*options, "--precision=bfloat16", "--max-extra-length=8"])

    asked = ask([text.encode() for text in SENTENCES])
    found, expected = (
        each.predict("serving_default", asked)["score"]
        for each in (Servable(tmp_path), servable)
    )
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=0.1, atol=0.1)
    assert (found != expected).any()
    weights = "1/variables/variables.data-00000-of-00001"
    sizes = [(d / weights).stat().st_size for d in (tmp_path, export_dir)]
    assert sizes[0] < 0.6 * sizes[1]
    capsys.readouterr()
    check.main(["--export-dir", str(tmp_path)])
    said = capsys.readouterr().out
    assert "ok" in said
    assert "WRONG" not in said


def test_draws_depend_on_line_and_number_alone(export_dir, servable, translate_file):
    """Not on the lines around, nor on who answers; beyond 32 bits, too."""
    lines = [SENTENCES[place % 3] for place in range(40)]
    how = ["--sample", "--temperature=1.5", "--top-k=30", "--top-p=0.95"]

    def draw(*options):
        drawn = translate_file("\n".join(lines).encode(), *options, *how)
        return drawn.split(b"\n")[:-1]

    found = draw("--export-dir", export_dir, f"--seed={2**32 + 7}")

    with serve_grpc(servable) as address:
        server = ["--server", address, "--model-name", servable.name]
        served = draw(*server, "--seed=7", "--batch-tokens=40")
    texts = [line.encode() for line in lines]
    inputs = sample_inputs(texts, 8 + np.arange(40), 1.5, 30, 0.95)
    expected = servable.predict("sample", inputs)["translation"]
    assert found == [b" ".join(text.splitlines()) for text in expected]
    assert served == found
    assert len(set(found)) > 20


CONVERTED = {"decoding": {"beam_size": 3, "penalty_offset": 0}}
GERMAN = {"source_language": "de"}


@pytest.mark.parametrize(
    ("run", "options", "expected"),
    [
        ({}, "", (4, 0.6, 50, 5, "")),  # As the paper searched.
        ({}, "--length-penalty=0 --max-extra-length=0", (4, 0, 0, 5, "")),
        (CONVERTED, "", (3, 0.6, 50, 0, "")),
        (CONVERTED, "--beam-size=1 --penalty-offset=5", (1, 0.6, 50, 5, "")),
        (GERMAN, "", (4, 0.6, 50, 5, "de")),
        (GERMAN, "--source-language=fr", (4, 0.6, 50, 5, "fr")),
    ],
)
def test_what_is_left_open_is_as_the_run_says(tmp_path, run, options, expected):
    (tmp_path / "arguments.json").write_text(json.dumps(run))
    arguments = [f"--run-dir={tmp_path}", "--export-dir=x", *options.split()]

    found = export_command.fill_in_defaults(export_command.parse_options(arguments))

    assert (
        *(found.beam_size, found.length_penalty, found.max_extra_length),
        *(found.penalty_offset, found.source_language),
    ) == expected
