"""Tests of parsing at the export's end: trees written, scored and drawn."""

import html.parser
import json
import sys

import pytest

import export.__main__ as export_command
import train.__main__ as train_command
from export import evaluate
from export import translate
from tests.helpers.refusal import refusal
from tests.helpers.translations import answer

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
        texts = [
            line if isinstance(line, str) else line.decode() for line in lines
        ]
        outputs = [OUTPUTS.get(text, "").encode() for text in texts]
        return answer(outputs)

    for module in (evaluate, translate):
        monkeypatch.setattr(module, "load", lambda args: parse)


def test_scores_every_sentence_and_counts_what_is_mended(trees, capsys):
    arguments = ["--export-dir=x", f"--trees={trees}"]

    evaluate.main([*arguments, "--json"])
    results = json.loads(capsys.readouterr().out)
    evaluate.main(arguments)
    text = capsys.readouterr().out

    # Gold S NP VP, S NP VP NP, FRAG NP; one NP is not found.
    assert results["precision"] == 100
    assert results["recall"] == pytest.approx(100 * 8 / 9)
    assert results["f1"] == pytest.approx(2 * 8 / (8 + 9) * 100)
    assert results["complete_match"] == pytest.approx(200 / 3)
    assert results["malformed"] == pytest.approx(100 / 3)
    assert results["mended"] == {
        "parses": 3, "malformed": 1, "brackets": 1, "leaves": 1
    }  # fmt: skip
    assert "F1                 94.12  labelled brackets" in text
    assert "1 of 3 parses malformed and mended (brackets 1, leaves 1)" in text


def test_scores_of_trees_stay_with_the_version(trees, tmp_path, capsys):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").touch()

    evaluate.main([f"--export-dir={tmp_path}", f"--trees={trees}", "--record"])

    scores = json.loads((tmp_path / "1/assets.extra/scores.json").read_text())
    assert scores["dev.ptb"]["f1"] == pytest.approx(94.1176, abs=1e-4)
    assert set(scores["dev.ptb"]["sha256"]) == {"trees"}


def test_writes_whole_trees(tmp_path, capsys):
    lines = [*OUTPUTS, "", "unknown (words"]
    (tmp_path / "in").write_text("\n".join(lines) + "\n")
    arguments = ["--export-dir=x", "--input", str(tmp_path / "in")]
    arguments += ["--output", str(tmp_path / "out")]

    translate.main([*arguments, "--trees"])
    captured = capsys.readouterr()
    parsed = (tmp_path / "out").read_text().splitlines()
    translate.main(arguments)

    assert parsed == [
        "(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))",
        "(TOP (S (NP (NNS Dogs)) (VP (VBP eat) (NN food))))",
        "(TOP (FRAG (NP (CD One)) (-LRB- -LRB-) (XX <two>) (XX -RRB-)))",
        "",
        "(TOP (XX unknown) (XX -LRB-words))",
    ]
    assert "2 of 5 parses malformed and mended" in captured.err
    # Without the option, what the model wrote.
    assert (tmp_path / "out").read_text().splitlines() == [
        *OUTPUTS.values(), "", ""
    ]  # fmt: skip


class Texts(html.parser.HTMLParser):
    """Collects tags and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data.strip())


def test_draws_parses_beside_the_treebank(trees, tmp_path):
    pytest.importorskip("svgling", reason="needs svgling")
    path = tmp_path / "trees.html"

    evaluate.main(["--export-dir=x", f"--trees={trees}", f"--picture={path}"])

    page = Texts(path.read_text(encoding="utf-8"))
    assert page.tags.count("figure") == 6
    assert page.tags.count("svg") >= 6
    for text in ("The cat sleeps .", "FRAG", "<two>", "Treebank"):
        assert text in page.texts
    # Gold and parse of the first sentence.
    assert page.texts.count("VP") == 4
    assert page.texts.count("NP") == 2 + 3 + 2


def test_scores_are_printed_where_a_picture_cannot_be_written(
    trees, tmp_path, capsys
):
    pytest.importorskip("svgling", reason="needs svgling")

    with pytest.raises(SystemExit):
        evaluate.main(
            ["--export-dir=x", f"--trees={trees}", f"--picture={tmp_path}"]
        )

    captured = capsys.readouterr()
    assert "F1                 94.12" in captured.out
    assert "Is a directory" in captured.err


def test_a_tree_too_deep_to_draw_is_written(trees, tmp_path, monkeypatch):
    pytest.importorskip("svgling", reason="needs svgling")
    deep = " ".join(["(NP"] * 900 + ["x/NN"] * 4 + [")NP"] * 900)
    monkeypatch.setitem(OUTPUTS, "The cat sleeps .", deep)
    path = tmp_path / "trees.html"

    evaluate.main(["--export-dir=x", f"--trees={trees}", f"--picture={path}"])

    assert "(TOP (NP (NP (NP" in path.read_text(encoding="utf-8")


def test_says_what_pictures_need(trees, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "svgling", None)

    line = refusal(
        capsys,
        evaluate.main,
        ["--export-dir=x", f"--trees={trees}", "--picture=x.html"],
    )

    assert line.endswith("--picture needs svgling: pip install svgling")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "or --trees. Received: neither"),
        (["--source=x"], "or --trees. Received: --source"),
        (["--trees=x", "--source=x"], "Received: --source, --trees"),
        (["--source=x", "--reference=x", "--picture=y"], "needs --trees"),
        (["--trees=x", "--picture=no/y"], "is there. Received: no/y"),
        (["--trees=none"], "no such file: none"),
        (["--trees=x", "--paper-bleu"], "--paper-bleu is of translations"),
        (["--trees=x", "--confidence"], "--confidence is of translations"),
        (["--trees=x", "--baseline=y"], "--baseline is of translations"),
    ],
)
def test_refuses_test_sets_that_are_none(capsys, options, message):
    line = refusal(capsys, evaluate.main, ["--export-dir=x", *options])

    assert message in line


@pytest.mark.parametrize(
    ("task", "options", "search"),
    [
        ("parsing", [], (21, 0.3, 300)),
        ("parsing", ["--beam-size=4", "--max-extra-length=0"], (4, 0.3, 0)),
        (None, [], (4, 0.6, 50)),
        (None, ["--length-penalty=0"], (4, 0.0, 50)),
    ],
)
def test_a_run_is_exported_as_the_paper_searched(
    tmp_path, task, options, search
):
    path = tmp_path / "arguments.json"
    path.write_text(json.dumps({"arguments": {"task": task}}))
    arguments = [f"--run-dir={tmp_path}", "--export-dir=x", *options]

    args = export_command.parse_arguments(arguments)
    export_command.fill_in(args)

    assert (
        args.beam_size,
        args.length_penalty,
        args.max_extra_length,
    ) == search


def test_a_run_without_arguments_is_a_translation(tmp_path):
    args = export_command.parse_arguments(
        [f"--run-dir={tmp_path}", "--export-dir=x"]
    )
    export_command.fill_in(args)

    assert args.beam_size == 4


@pytest.mark.slow
def test_a_treebank_becomes_a_parser(trees, tmp_path, capsys):
    run_dir, export_dir = tmp_path / "run", tmp_path / "export"
    sizes = {
        "preset": "parsing-small",
        "num-layers": 1,
        "hidden-dim": 32,
        "intermediate-dim": 32,
        "num-heads": 2,
        "key-dim": 16,
        "value-dim": 16,
        "dropout": 0,
        "vocabulary-size": 320,
        "batch-tokens": 64,
        "steps": 150,
        "round-steps": 75,
        "warmup-steps": 50,
        "average": 1,
    }
    train_command.main(
        [
            *(f"--run-dir={run_dir}", "--task=parsing"),
            *(f"--train-trees={trees}", f"--validation-trees={trees}"),
            *(f"--{name}={value}" for name, value in sizes.items()),
        ]
    )
    assert (run_dir / "logs" / "attention").is_dir()
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
