"""Runs of several languages in one model."""

import json

import pytest
import sentencepiece

import train.__main__ as train_command
from tests.helpers.small_runs import OPTIONS, TINY_OPTIONS, refused as refusal
from text_processing.language_tags import LanguageTags
from train.data.corpus import demo_pairs
from train.run.run_folder import read_history

TAGS = {"es": "▁<2es>", "x-reversed": "▁<2x-reversed>"}


@pytest.fixture(scope="module")
def mixture(tmp_path_factory):
    """English to Spanish, and to English with the words in the opposite order."""
    folder = tmp_path_factory.mktemp("mixture")
    pairs = demo_pairs("validation")
    reverse = [" ".join(line.split()[::-1]) for line in pairs.sources]
    texts = {"en": pairs.sources, "es": pairs.targets, "x-reversed": reverse}
    sources = []
    for code, lines in texts.items():
        size = 30 if code == "x-reversed" else 60
        for name, part in (("train", lines[:size]), ("valid", lines[60:70])):
            (folder / f"{name}.{code}").write_text("\n".join(part) + "\n")
    (folder / "few.en").write_text("\n".join(pairs.sources[:30]) + "\n")
    for code, english in (("es", "train.en"), ("x-reversed", "few.en")):
        source = {"source": english, "target": f"train.{code}"}
        source |= {"validation_source": "valid.en"}
        source |= {"validation_target": f"valid.{code}", "target_language": code}
        sources.append({**source, "source_language": "en"})
    path = folder / "mixture.json"
    path.write_text(json.dumps(sources))
    return [f"--mixture={path}", "--sampling-temperature=5"]


@pytest.fixture(scope="module")
def finished(mixture, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "run"
    options = [*OPTIONS, "--validate-bleu=4", "--validation-beam-size=1"]
    train_command.main([*mixture, *options, f"--run-dir={run_dir}"])
    return run_dir


def test_a_run_names_its_tags_and_scores_each_pair(finished):
    written = json.loads((finished / "arguments.json").read_text())
    model = json.loads((finished / "model.json").read_text())
    scores = model["validation"]
    *_, last = read_history(finished)

    assert written["languages"] == {
        **{"source_tags": {}, "target_tags": TAGS, "is_forced": False}
    }
    found = LanguageTags(**written["languages"]).find("en", "es")
    assert found == ([TAGS["es"]], [])
    assert written["source_language"] == "en"
    for row in (last, scores):
        of_pairs = [float(row[f"bleu_en-{code}"]) for code in TAGS]
        assert float(row["bleu"]) == pytest.approx(sum(of_pairs) / 2)
    # An export translates the samples, and puts the tags in itself.
    assert {s["source"] for s in model["samples"]} < {*demo_pairs("validation").sources}
    proto = (finished / "tokenizer.model").read_bytes()
    subwords = sentencepiece.SentencePieceProcessor(model_proto=proto)
    for tag in TAGS.values():
        assert subwords.encode(tag[1:], out_type=str) == [tag]


def test_it_starts_from_a_run_of_its_languages_alone(
    mixture, finished, corpus, tmp_path, capsys
):
    options = [*TINY_OPTIONS, f"--run-dir={tmp_path / 'run'}"]
    start = [*options, f"--init-from={finished}"]
    other = tmp_path / "untagged"
    train_command.main([*corpus, *TINY_OPTIONS, f"--run-dir={other}"])

    again = [*mixture, *OPTIONS, f"--run-dir={finished}", "--sampling-temperature=2"]
    line = refusal(capsys, again)
    assert "sampling_temperature: 5.0 there, 2.0 here; train: other text" in line
    line = refusal(capsys, [*start, *corpus])
    assert "its target languages: es, x-reversed. Received: no tags" in line
    line = refusal(capsys, [*options, *mixture, f"--init-from={other}"])
    assert f"Received: {other} without ▁<2es>, ▁<2x-reversed>" in line
    line = refusal(capsys, [*options, *mixture, "--both-directions"])
    assert "--both-directions is for one target language" in line
    path = tmp_path / "tokenizer.model"
    path.write_bytes((other / "tokenizer.model").read_bytes())
    line = refusal(capsys, [*options, *mixture, f"--tokenizer={path}"])
    assert f"subwords of --tokenizer. Received: {path} without" in line
    train_command.main([*start, *mixture])
    written = json.loads((tmp_path / "run" / "arguments.json").read_text())
    assert written["languages"]["target_tags"] == TAGS
