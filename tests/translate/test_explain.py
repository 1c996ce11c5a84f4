"""Tests of `translate.explain`: what the page holds."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers.example_sentences import SENTENCES, TEXT_WITH_MARKUP
from translate import explain
from translate.report.explanation_page import (
    OF_TARGETS,
    best_path,
    describe_translation,
    make_notes,
)


def test_the_command_writes_one_file_that_needs_nothing(
    export_runtime, export_dir, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(explain, "load_export", {export_dir: export_runtime}.get)
    output = tmp_path / "report.html"

    options = [f"--export-dir={export_dir}", f"--output={output}"]
    explain.main([*options, f"--text={TEXT_WITH_MARKUP}"])

    assert f"{output} is written" in capsys.readouterr().out
    html = output.read_text("utf-8")
    assert not re.findall(r"(?:src|href)\s*=|url\(|@import|https?://(?!www.w3)", html)
    (embedded,) = re.findall(r'type="application/json" id="data">(.*?)</', html)
    found = json.loads(embedded)
    assert found["source"]["text"] == TEXT_WITH_MARKUP


def test_the_page_has_what_the_export_says(ask, data):
    best = ask("serving_default", text=TEXT_WITH_MARKUP)
    target = data["target"]

    assert target["text"] == best["translation"].decode()
    assert np.shape(data["encoder_attention"])[:2] == (2, 2)
    outputs = ask("explain", source=TEXT_WITH_MARKUP, target=target["text"])
    for name in OF_TARGETS:
        np.testing.assert_allclose(target[name], outputs[name], atol=6e-5)
    assert target["score"] == pytest.approx(outputs["score"], abs=6e-5)
    beam = ask("explain_beam", text=TEXT_WITH_MARKUP)
    assert data["beam"]["kept"] == beam["kept"].tolist()


def test_notes_say_what_is_not_as_it_seems(ask):
    beam = ask("explain_beam", text=SENTENCES[0])
    path = best_path(beam)
    pieces = [beam["tokens"][step, rank] for step, rank in enumerate(path)]

    def notes(found, pieces, target_truncated=False):
        own = {
            "source_tokens": np.array([b"a"], object),
            "target_tokens": np.array(pieces, object),
            "truncated": target_truncated,
            "decoder_attention": np.ones([1, 1, 1, 1]),
        }
        return make_notes(found, beam, path, own)

    assert notes({"truncated": False}, pieces) == []
    (note,) = notes({"truncated": True}, pieces)
    assert "was cut at the limit" in note
    other = [*pieces[:-1], b"x", b"</s>"]
    (note,) = notes({"truncated": False}, other)
    assert "other subwords" in note
    (note,) = notes({"truncated": False}, other, target_truncated=True)
    assert note.startswith("The translation or the source is longer")


def test_of_long_texts_only_the_first_pieces_are_shown(ask, data, monkeypatch):
    monkeypatch.setattr("translate.report.explanation_page.MAX_SHOWN", 3)

    found = describe_translation(ask, TEXT_WITH_MARKUP.encode())

    assert found["source"]["tokens"] == data["source"]["tokens"][:3]
    assert found["source"]["pieces"] == len(data["source"]["tokens"])
    whole = np.array(data["encoder_attention"])
    np.testing.assert_array_equal(found["encoder_attention"], whole[..., :3, :3])
    target, of_all = found["target"], data["target"]
    assert target["tokens"] == of_all["tokens"][:3]
    assert target["pieces"] == len(of_all["tokens"])
    assert target["log_probability"] == pytest.approx(
        sum(of_all["token_log_probabilities"]), abs=5e-3
    )
    assert found["beam"]["steps"] == len(data["beam"]["tokens"])
    assert any("first 3 subwords" in note for note in found["notes"])
    assert not any("first" in note for note in data["notes"])


def test_refuses_what_is_no_export_that_explains(tmp_path, refused):
    module = tf.Module()
    module.call = tf.function(
        lambda text: {"translation": text},
        input_signature=[tf.TensorSpec([None], tf.string, name="text")],
    )
    tf.saved_model.save(module, str(tmp_path / "1"), {"serving_default": module.call})

    there = ["--text=a", "--output", tmp_path / "x", "--export-dir", tmp_path]
    line = refused(explain, *there)

    assert "must have the signature explain" in line


def test_bytes_that_are_no_text_are_drawn(ask):
    data = describe_translation(ask, b"A \xff dog")

    json.loads(json.dumps(data)).pop("source")
    assert "\ufffd" in data["source"]["text"]
