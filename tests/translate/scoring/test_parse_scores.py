"""Tests of parsing at the export's end: trees written, scored and drawn."""

import json

import pytest
from tensorflow.compat import as_text

import export.__main__ as export_command
import train.__main__ as train_command
from tests.helpers.fake_models import FunctionRuntime, make_outputs
from translate import __main__ as translate, evaluate

TREES = """\
(ROOT (S (NP-SBJ (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))
(ROOT (S (NP (NNS Dogs)) (VP (VBP eat) (NP (NN food)))))
(ROOT (FRAG (NP (NN One)) (-LRB- -LRB-) (NN <two>) (-RRB- -RRB-)))
"""
OUTPUTS = {
    "The cat sleeps .": "(S (NP The/DT cat/NN )NP (VP sleeps/VBZ )VP ./. )S",
    "Dogs eat food": "(S (NP Dogs/NNS )NP (VP eat/VBP food/NN )VP )S",
    "One ( <two> )": "(FRAG (NP One/CD )NP -LRB-/-LRB-",
}


@pytest.fixture
def trees(tmp_path):
    path = tmp_path / "dev.ptb"
    path.write_text(TREES)
    return path


@pytest.fixture(autouse=True)
def model(request, monkeypatch):
    """A model that has learnt `OUTPUTS` by heart, but in slow tests."""
    if request.node.get_closest_marker("slow"):
        return

    def parse(lines):
        return make_outputs([OUTPUTS.get(as_text(line), "") for line in lines])

    for module in (evaluate, translate):
        monkeypatch.setattr(module, "load", lambda *_: FunctionRuntime(parse))


def test_scores_every_sentence_and_counts_repairs(trees, capsys):
    evaluate.main(["--export-dir=x", f"--trees={trees}", "--json"])
    results = json.loads(capsys.readouterr().out)
    # Gold S NP VP, S NP VP NP, FRAG NP; one NP is not found.
    assert results["precision"] == 100
    assert results["recall"] == pytest.approx(100 * 8 / 9)
    assert results["f1"] == pytest.approx(2 * 8 / (8 + 9) * 100)
    assert results["complete_match"] == pytest.approx(200 / 3)
    assert results["malformed"] == pytest.approx(100 / 3)
    repaired = {"parses": 3, "malformed": 1, "brackets": 1, "leaves": 1}
    assert results["repaired"] == repaired


def test_writes_whole_trees(translate_file, capsys):
    content = "\n".join([*OUTPUTS, "", "unknown (words"]).encode()

    parsed = translate_file(content, "--export-dir=x", "--trees")
    captured = capsys.readouterr()
    written = translate_file(content, "--export-dir=x")

    assert parsed.decode().splitlines() == [
        "(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))",
        "(TOP (S (NP (NNS Dogs)) (VP (VBP eat) (NN food))))",
        "(TOP (FRAG (NP (CD One)) (-LRB- -LRB-) (XX <two>) (XX -RRB-)))",
        "",
        "(TOP (XX unknown) (XX -LRB-words))",
    ]
    assert "2 of 5 parses malformed and repaired" in captured.err
    # Without the option, what the model wrote.
    assert written.decode().splitlines() == [*OUTPUTS.values(), "", ""]


@pytest.mark.slow
def test_a_treebank_becomes_a_parser(trees, tmp_path, capsys):
    run_dir, export_dir = tmp_path / "run", tmp_path / "export"
    sizes = "--preset=parsing-small --num-layers=1 --hidden-dim=32 --num-heads=2 "
    sizes += "--intermediate-dim=32 --key-dim=16 --value-dim=16 --dropout=0 "
    sizes += "--vocabulary-size=320 --batch-tokens=64 --steps=150 --average=1 "
    sizes += "--steps-per-epoch=75 --warmup-steps=50 --allow-validation-in-training "
    data = [f"--train-trees={trees}", f"--validation-trees={trees}"]
    train_command.main([f"--run-dir={run_dir}", *data, *sizes.split()])
    export_command.main([f"--run-dir={run_dir}", f"--export-dir={export_dir}"])
    capsys.readouterr()

    evaluate.main([f"--export-dir={export_dir}", f"--trees={trees}", "--json"])

    # Three trees are learnt by heart.
    results = json.loads(capsys.readouterr().out)
    assert results["f1"] == 100
    assert results["malformed"] == 0
    bundle = export_dir / "1/assets.extra/bundle.json"
    settings = json.loads(bundle.read_text())["settings"]
    assert settings["beam_size"] == 21
    assert settings["max_extra_length"] == 300
