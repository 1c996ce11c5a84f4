"""Runs of `python -m train` with options of text and vocabulary."""

import json

import sentencepiece

import train.__main__ as train_command
from tests.helpers.other_systems.converted_runs import train_spm
from tests.helpers.small_runs import TINY_OPTIONS, refused
from train.data.corpus import demo_pairs

# The size of the vocabulary is that of the file.
FEW = [*(o for o in TINY_OPTIONS if not o.startswith("--vocabulary-size")), "--steps=1"]


def test_a_vocabulary_from_elsewhere(corpus, tmp_path, capsys):
    paths = [tmp_path / "their.model", tmp_path / "other.model"]
    for size, path in zip((400, 500), paths, strict=True):
        lines = demo_pairs("validation").sources
        path.write_bytes(train_spm(lines, size, model_type="bpe"))

    run_dir = tmp_path / "run"
    command = ["--run-dir", str(run_dir), *corpus, *FEW, "--tokenizer"]

    train_command.main([*command, str(paths[0])])

    proto = (run_dir / "tokenizer.model").read_bytes()
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    assert model.get_piece_size() == 401  # It had no padding.
    description = json.loads((run_dir / "arguments.json").read_text())
    assert description["arguments"]["vocabulary_size"] == 401
    # It may move, but not change.
    moved = paths[0].rename(tmp_path / "moved.model")
    train_command.main([*command, str(moved)])
    message = refused(capsys, [*command, paths[1]])
    assert "vocabulary_size: 401 there, 501 here" in message
    assert "tokenizer: " in message
