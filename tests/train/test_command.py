import gzip
import hashlib
import json
import pathlib
import shutil

import keras
import numpy as np
import pytest
import sacrebleu
import sentencepiece
import tensorflow as tf

import train.__main__ as train_command
from command_line.errors import UserError
from command_line.options import replace_values
from keras_transformer import SubwordTokenizer
from tests.helpers.other_systems.converted_runs import pieces_of, train_spm
from tests.helpers.small_runs import (
    TINY_OPTIONS,
    assert_same_run,
    claim_run,
    refused as refusal,
)
from train import data_preparation
from train.data.corpus import demo_pairs
from train.data_preparation import describe_run, group_for_bleu
from train.options import parse_options
from train.resolve_options import resolve
from train.run.fine_tuning import load_finished
from train.run.run_description import RunDescription
from train.run.run_folder import read_history
from train.training_corpus import load_corpus


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "first"
    train_command.main(["--run-dir", str(run_dir), *corpus, *TINY_OPTIONS])
    return run_dir


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "copy")


def test_a_run_folder_holds_all_that_the_run_was(finished):
    names = {path.name for path in finished.iterdir()}
    assert names == {
        *("arguments.json", "checkpoints", "encoded", "history.csv", "lock"),
        *("logs", "model.json", "model.keras", "report.json"),
        "tokenizer.model",
    }
    description = json.loads((finished / "arguments.json").read_text())
    assert description["preset"]["hidden_dim"] == 8
    assert description["preset"]["dropout"] == 0.3
    assert description["packages"]["keras"] == keras.__version__
    assert description["row_multiple"] == 8
    assert [row["step"] for row in read_history(finished)] == ["2", "3"]
    model = keras.saving.load_model(finished / "model.keras")
    proto = (finished / "tokenizer.model").read_bytes()
    assert model.vocabulary_size == SubwordTokenizer(proto).vocabulary_size
    assert model.sequence_length == 90


def test_a_run_that_goes_on_ends_as_one_that_was_longer(copy, corpus, tmp_path, capsys):
    """It had ended within a round, whose row is taken back."""
    (copy / "lock").unlink()
    options = [*corpus, *TINY_OPTIONS, f"--cache-dir={copy / 'encoded'}"]
    options += ["--steps=5", "--run-dir"]

    train_command.main([*options, str(copy)])
    train_command.main([*options, str(tmp_path / "at once")])

    runs = copy, tmp_path / "at once"
    assert [row["step"] for row in read_history(copy)] == ["2", "4", "5"]
    assert_same_run(*runs)
    scores = [json.loads((run / "model.json").read_text()) for run in runs]
    assert scores[0]["validation"] == scores[1]["validation"]
    # The learning rate still rises: the mean would take the warm-up's.
    assert scores[0]["checkpoints"] == ["ckpt-5"]
    line = refusal(capsys, [*options, copy, "--steps=4"])
    assert "steps: 5 there, 4 here" in line


def test_a_run_keeps_the_rows_that_it_began_with(copy, corpus):
    """It may have begun on 24 devices; on this one its batches stay."""
    path = copy / "arguments.json"
    description = json.loads(path.read_text())
    description["row_multiple"] = 24
    path.write_text(json.dumps(description))
    options = ["--run-dir", copy, *corpus, *TINY_OPTIONS]

    plan = claim_run([*options, "--steps", "4"])

    assert json.loads(path.read_text())["row_multiple"] == 24
    report = json.loads((copy / "report.json").read_text())
    shapes = [*plan.shapes, *report["batches"]["shapes"]]
    assert {rows % 24 for rows, *_ in shapes} == {0}


def resume(run_dir, options):
    given = parse_options([f"--run-dir={run_dir}", *map(str, options)])
    resolved, preset = resolve(given, None)
    pairs = load_corpus(resolved)
    group_for_bleu(resolved, pairs)
    return describe_run(resolved, preset, pairs, None)[0]


def test_a_mistake_in_the_number_of_steps_can_be_repaired(copy, corpus):
    options = [*corpus, *TINY_OPTIONS]
    there = json.loads((copy / "arguments.json").read_text())
    there["preset"]["steps"] = there["arguments"]["steps"] = 40_000
    (copy / "arguments.json").write_text(json.dumps(there))
    (copy / "checkpoints" / "ckpt-300.index").touch()

    for steps in (300, 4_000, 90_000):
        resume(copy, [*options, "--steps", steps])
    with pytest.raises(UserError, match="steps: 40000 there, 299 here"):
        resume(copy, [*options, "--steps", 299])


def test_what_moves_no_update_may_change(copy, corpus):
    options = [*corpus, *TINY_OPTIONS]
    changes = (
        "--validate-bleu=1 --validation-beam-size=2 --patience=3 "
        "--best-by=chrf --average=9 --steps-per-epoch=7 --bleu-tokenize=char"
    )

    description = resume(copy, [*options, *changes.split()])

    assert description.steps_per_epoch == 7


def test_a_resumed_run_keeps_the_length_of_its_epochs(copy, corpus):
    options = [o for o in TINY_OPTIONS if not o.startswith("--steps-per-epoch")]

    description = resume(copy, [*corpus, *options, "--steps=40000"])

    assert description.steps_per_epoch == 2


@pytest.mark.parametrize("entry", ["preset", "steps_per_epoch"])
def test_damaged_arguments_are_refused_in_one_line(
    finished, corpus, tmp_path, capsys, entry
):
    path = tmp_path / "arguments.json"
    description = json.loads((finished / "arguments.json").read_text())
    del description[entry]
    path.write_text(json.dumps(description))
    message = f"{path} must be whole. Received: "
    new = ["--run-dir", tmp_path / "new", *corpus]
    assert message in refusal(capsys, ["--run-dir", tmp_path, *corpus, *TINY_OPTIONS])
    path.write_text(json.dumps(description)[:100])
    assert message in refusal(capsys, [*new, "--init-from", tmp_path])
    assert f"{path} must be YAML. Rec" in refusal(capsys, [*new, "--config", path])


def test_other_arguments_are_refused_by_name(finished, corpus, capsys):
    changes = {
        "--seed=7": "seed: 0 there, 7 here",
        "--dropout=0": "dropout: 0.3 there, 0.0 here",
        "--clip-norm=1": "clip_norm: None there, 1.0 here",
        "--norm=pre": "norm: post there, pre here",
    }

    line = refusal(capsys, ["--run-dir", finished, *corpus, *TINY_OPTIONS, *changes])

    for message in changes.values():
        assert message in line
    assert line.count(" there, ") == len(changes)


def test_the_same_text_may_lie_elsewhere_and_come_in_other_portions(
    finished, corpus, tmp_path
):
    moved = list(corpus)
    for i in range(1, len(moved), 2):
        moved[i] = tmp_path / f"{i}.gz"
        moved[i].write_bytes(gzip.compress(pathlib.Path(corpus[i]).read_bytes()))
    options = [*moved, *TINY_OPTIONS]

    # A default may be written out.
    options += ["--schedule=inverse-sqrt", "--max-tokens-per-replica", "512"]

    # Known of the run that is resumed alone.
    assert resume(finished, options).row_multiple == 8


def test_the_demo_writes_its_test_sets(tmp_path, capsys):
    # The vocabulary is refused after the demo's files are written.
    arguments = ["--run-dir", tmp_path, "--dataset", "demo"]
    line = refusal(capsys, [*arguments, *TINY_OPTIONS, "--vocabulary-size", "90000"])

    assert "larger than the text supports" in line
    for split in ("test", "unseen"):
        lines = (tmp_path / "demo" / f"{split}.es").read_text().splitlines()
        assert lines == demo_pairs(split).targets


BEFORE = {  # Options that are refused before the text is encoded.
    "--train-source=nowhere": "no such file: nowhere",
    "--preset=bse": "Received: --preset 'bse'. The nearest is 'base'",
    "--dataset=demo": "--dataset must come without --train-pairs",
    "--devices=GPU:9": "--devices must be among",
    "--dropout=1.5": "`dropout` must be a number in [0, 1)",
    "--num-heads=0": "`num_heads` must be a positive int",
    "--steps=0": "argument --steps: invalid positive int value: '0'",
    "--seed=-1": "Seed must be between 0 and",
    "--vocabulary-size=0": "`vocabulary_size` must be a positive int",
    "--best-by=bleu --patience=2": "--best-by bleu needs --validate-bleu N. "
    "Received: --best-by bleu",
    "--init-from=nowhere": "--init-from must be the folder of a run",
    "--config=nowhere": "No such file or directory: nowhere",
}
MISTAKES = {
    **BEFORE,
    "--max-tokens-per-replica=9": "at least as long as the longest sentence, 63 tokens",
    "--vocabulary-size=9000": "larger than the text supports",
    "--max-length=2": "no pair of the corpus has text of 1 to 2",
}


@pytest.mark.parametrize("change", MISTAKES)
def test_mistakes_end_in_one_line_and_claim_no_folder(
    corpus, tmp_path, capsys, monkeypatch, change
):
    if change in BEFORE:
        for name in ("make_vocabulary", "encode_corpus"):
            monkeypatch.delattr(data_preparation, name)
    options = ["--run-dir", tmp_path, *corpus, *TINY_OPTIONS, *change.split()]

    assert MISTAKES[change] in refusal(capsys, options)
    assert not (tmp_path / "arguments.json").exists()


def test_validation_pairs_that_are_in_training_must_be_asked_for(
    corpus, tmp_path, capsys
):
    same = ["--validation-source", corpus[1], "--validation-target", corpus[3]]
    options = ["--run-dir", tmp_path, *corpus[:4], *same, *TINY_OPTIONS]

    line = refusal(capsys, options)

    assert "--allow-validation-in-training. Received: 60, all in training" in line
    assert not (tmp_path / "arguments.json").exists()
    claim_run([*options, "--allow-validation-in-training"])
    assert "60 of the 60 validation pairs are in training" in capsys.readouterr().out


def test_a_tokenizer_that_is_missing_is_refused_before_any_work(
    corpus, tmp_path, capsys, monkeypatch
):
    def lacking(*_, **__):
        raise RuntimeError("Japanese tokenization requires\n\nmore")

    monkeypatch.setattr(sacrebleu.metrics.bleu.BLEU, "__init__", lacking)
    target = tmp_path / "valid.ja"
    target.write_text("y\n" * 10)
    options = ["--run-dir", tmp_path, *corpus[:7], target, *TINY_OPTIONS]

    line = refusal(capsys, [*options, "--validate-bleu=1"])

    assert "translation[ja]', or take --bleu-tokenize char" in line
    assert not [*tmp_path.glob("encoded/*.model")]
    # Without translations nothing is missing.
    assert resume(tmp_path, options[2:]).arguments["validate_bleu"] == 0


def test_quality_is_watched_and_ends_a_run_in_vain(corpus, tmp_path, capsys):
    watch = "--validate-bleu 2 --validation-beam-size 2"
    # With a rate of nearly zero no round is better than the first.
    options = "--patience 1 --learning-rate-scale 1e-30 --steps 100"
    options += " --warmup-steps 1"
    command = [*corpus, *TINY_OPTIONS, *watch.split(), *options.split()]
    command += ["--run-dir", str(tmp_path)]

    train_command.main(command)

    history = (tmp_path / "history.csv").read_bytes()
    rows = read_history(tmp_path)
    assert [row["step"] for row in rows] == ["2", "4"]
    assert rows[0]["bleu"] == ""
    assert 0 <= float(rows[1]["bleu"]) <= 100
    assert rows[0]["val_loss"] == rows[1]["val_loss"]
    description = json.loads((tmp_path / "arguments.json").read_text())
    assert description["arguments"]["best_by"] == "loss"
    output = capsys.readouterr().out
    model = json.loads((tmp_path / "model.json").read_text())
    content = (tmp_path / "model.keras").read_bytes()
    assert model["sha256"] == hashlib.sha256(content).hexdigest()
    assert model["checkpoints"] == ["ckpt-2", "ckpt-4"]
    # So slow a run moves nothing: the scores of its last round are these.
    found = model["validation"]
    assert found["loss"] == pytest.approx(float(rows[1]["val_loss"]))
    for name in ("bleu", "chrf"):
        assert found[name] == pytest.approx(float(rows[1][name]))
    assert f"BLEU {found['bleu']:.2f} (nrefs:1|case:mixed" in output
    assert "tok:13a" in found["signature"]
    assert {*model["samples"][4]} == {"source", "reference", "translation"}

    assert "pairs read" in output
    train_command.main(command)  # There is nothing more to do.
    assert "pairs read" not in capsys.readouterr().out
    train_command.main([*command, "--average=1"])  # Only the mean is another.
    assert json.loads((tmp_path / "model.json").read_text())["checkpoints"] == [
        "ckpt-2"
    ]
    assert (tmp_path / "history.csv").read_bytes() == history


def test_the_same_pairs_in_other_files_make_the_same_run(finished, corpus, tmp_path):
    texts = [pathlib.Path(name).read_text("utf-8").split("\n") for name in corpus[1::2]]
    texts = [lines[:-1] for lines in texts]
    pairs = zip(*texts[:2], strict=True)
    rows = [{"translation": {"en": en, "es": es}} for en, es in pairs]
    files = tmp_path / "train.jsonl.gz", tmp_path / "valid.tsv"
    files[0].write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    lines = map("\t".join, [("es", "en"), *zip(*texts[:1:-1], strict=True)])
    files[1].write_text("\n".join(lines), encoding="utf-8")
    options = [f"--train-pairs={files[0]}", f"--validation-pairs={files[1]}"]
    options += ["--source-language=en", "--target-language=es"]

    claim_run([f"--run-dir={tmp_path}", *TINY_OPTIONS, *options])

    description = json.loads((tmp_path / "arguments.json").read_text())
    before = json.loads((finished / "arguments.json").read_text())
    assert description["corpus"] == before["corpus"]
    assert (description["source_language"], before["source_language"]) == ("en", "")


def test_arguments_of_a_run_repeat_it(finished, corpus):
    path, history = finished / "arguments.json", finished / "history.csv"
    before = path.read_bytes(), history.read_bytes()

    # The folder holds that very run: it would refuse any other.
    train_command.main(["--run-dir", str(finished), "--config", str(path)])

    assert (path.read_bytes(), history.read_bytes()) == before


def test_a_file_of_options_is_printed_and_read(corpus, tmp_path, capsys):
    path = tmp_path / "run.yaml"
    options = ["--preset=tiny", "--no-both-directions", "--learning-rate-scale=1e-05"]
    options = [f"--run-dir={tmp_path}", *corpus, *options, "--devices", "CPU:0"]
    with pytest.raises(SystemExit) as exit_:
        train_command.main([*options, "--print-config"])
    path.write_text(capsys.readouterr().out)

    assert not exit_.value.code
    assert "- CPU:0" in path.read_text().splitlines()
    config = f"--config={path}"
    found = parse_options([config])
    assert found == replace_values(parse_options(options), config=path)
    # The command line comes first.
    found = parse_options([config, "--run-dir=x", "--seed=7", "--both-directions"])
    assert (found.run.run_dir, found.training.seed) == (pathlib.Path("x"), 7)
    assert found.run.both_directions
    path.write_text(f"run-dir: {tmp_path}")  # As the command line has it.
    assert parse_options([config]).run.run_dir == tmp_path
    path.write_text("config: other.yaml")
    assert "Received: config" in refusal(capsys, [config])


def test_a_vocabulary_from_elsewhere(corpus, tmp_path, capsys):
    paths = [tmp_path / "their.model", tmp_path / "other.model"]
    for size, path in zip((400, 500), paths, strict=True):
        lines = demo_pairs("validation").sources
        path.write_bytes(train_spm(lines, size, model_type="bpe"))

    run_dir = tmp_path / "run"
    # The size of the vocabulary is that of the file.
    options = [o for o in TINY_OPTIONS if not o.startswith("--vocabulary-size")]
    command = ["--run-dir", str(run_dir), *corpus, *options, "--tokenizer"]

    claim_run([*command, paths[0]])

    proto = (run_dir / "tokenizer.model").read_bytes()
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    assert model.get_piece_size() == 401  # It had no padding.
    assert pieces_of(proto) == pieces_of(paths[0].read_bytes())
    description = json.loads((run_dir / "arguments.json").read_text())
    assert description["arguments"]["vocabulary_size"] == 401
    # It may move, but not change.
    moved = paths[0].rename(tmp_path / "moved.model")
    claim_run([*command, moved])
    message = refusal(capsys, [*command, paths[1]])
    assert "vocabulary_size: 401 there, 501 here" in message
    assert "tokenizer: " in message


def test_two_files_are_enough(corpus, tmp_path, capsys):
    run_dir = tmp_path / "run"
    paths = [tmp_path / "all.en", tmp_path / "all.es"]
    for path, text in zip(paths, corpus[1:4:2], strict=True):
        path.write_text(2 * pathlib.Path(text).read_text())
    names = ("--train-source", "--train-target")
    options = [f"{name}={path}" for name, path in zip(names, paths, strict=True)]
    options += [*TINY_OPTIONS, "--run-dir", str(run_dir)]

    claim_run(options)

    held_out = [run_dir / "held_out.en", run_dir / "held_out.es"]
    texts = [path.read_text() for path in held_out]
    sources, targets = (text.splitlines() for text in texts)
    pairs = [*zip(*(p.read_text().splitlines() for p in paths[:2]), strict=True)]
    rest = [pair for pair in pairs if pair[0] not in sources]
    assert len({*sources}) == 6  # A twentieth of 122 pairs.
    assert {*zip(sources, targets, strict=True)} < {*pairs}
    assert len(rest) <= 110  # Each pair was there twice.
    report = json.loads((run_dir / "report.json").read_text())
    found = [report[name]["pairs"] for name in ("training", "validation")]
    assert found == [len(rest), 6]
    assert report["validation"]["in_training"] == {"sources": 0, "pairs": 0}
    printed = capsys.readouterr().out
    message = f"6 pairs are held out for validation, in {held_out[0]} and {held_out[1]}"
    assert f"{message}; {len(rest)} pairs of other sources" in printed
    # The same command resumes; with another seed other pairs would be held out.
    claim_run([*options, "--steps=4"])
    line = refusal(capsys, [*options, "--seed=1"])
    for message in ("seed: 0 there, 1 here", "train: other text", "validation: other"):
        assert message in line
    assert [path.read_text() for path in held_out] == texts


def test_a_run_starts_from_the_model_of_another(copy, corpus, tmp_path, capsys):
    texts = list(corpus)
    texts[3] = texts[1]  # Of these a vocabulary would be another one.
    command = [
        *["--run-dir", str(tmp_path / "run"), "--init-from", str(copy)],
        *["--steps", "1", "--learning-rate-scale", "1e-30", *texts],
    ]

    train_command.main(command)

    old, new = (
        keras.saving.load_model(folder / "model.keras")
        for folder in (copy, tmp_path / "run")
    )
    for a, b in zip(old.get_weights(), new.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert new.sequence_length == 90
    model = json.loads((tmp_path / "run" / "model.json").read_text())
    assert "bleu" in model["validation"]
    proto = (copy / "tokenizer.model").read_bytes()
    assert (tmp_path / "run" / "tokenizer.model").read_bytes() == proto
    path = tmp_path / "run" / "arguments.json"
    description = json.loads(path.read_text())
    assert description["preset"]["hidden_dim"] == 8
    assert description["init"]["tokenizer"] == hashlib.sha256(proto).hexdigest()
    given = parse_options(["--run-dir", "x", "--config", str(path)])
    _, preset = resolve(given, load_finished(given.run.init_from))
    assert preset == RunDescription.load(path).preset

    new.embedding.embeddings.assign(2 * new.embedding.embeddings)
    new.save(copy / "model.keras")
    line = refusal(capsys, command)
    assert "weights: " in line
    assert "tokenizer: " not in line


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--hidden-dim", "16"], "--hidden-dim 16, which is 8 there"),
        (["--preset", "base"], "Received: --num-layers 6, which is 1 there, -"),
        (["--vocabulary-size", "341"], "-size 341, which is 340 there"),
        (["--placeholders"], "--placeholders and language tags must be subwords of"),
    ],
)
def test_a_model_keeps_its_shape(finished, corpus, tmp_path, capsys, changes, message):
    options = ["--run-dir", tmp_path, "--init-from", finished, *corpus]
    dropout = ["--dropout=0.2", "--attention-dropout=0.1"]
    line = refusal(capsys, [*options, *dropout, *changes])

    assert message in line
    assert "dropout" not in line
    assert not (tmp_path / "arguments.json").exists()


def test_learned_positions_keep_their_number(copy):
    path = copy / "arguments.json"
    description = json.loads(path.read_text())
    start = load_finished(copy)
    start.check_shape(start.preset, None, 91)
    description["preset"]["positions"] = "learned"
    path.write_text(json.dumps(description))
    start = load_finished(copy)

    start.check_shape(start.preset, None, 90)
    with pytest.raises(UserError, match="--max-length 91, which is 90 there"):
        start.check_shape(start.preset, None, 91)


def test_a_run_that_has_not_ended_is_no_start(finished, tmp_path):
    shutil.copy(finished / "arguments.json", tmp_path)

    with pytest.raises(UserError, match="which has no model.keras"):
        load_finished(tmp_path)


def test_too_little_memory_ends_in_one_line(corpus, tmp_path, capsys, monkeypatch):
    def fail(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM (512, 9)\nx")

    monkeypatch.setattr(train_command.fit, "fit", fail)

    line = refusal(capsys, ["--run-dir", tmp_path, *corpus, *TINY_OPTIONS])

    assert "lower --max-tokens-per-replica" in line
    assert line.endswith("Received: OOM (512, 9)")


@pytest.mark.slow
def test_half_precision_learns_as_well(tmp_path):
    """300 updates on the embedded corpus, in each precision."""
    losses = {}
    for precision in ("float32", "bfloat16", "float16"):
        run_dir = tmp_path / precision
        train_command.main(
            [
                *("--dataset=demo", "--preset=tiny", "--num-layers=1"),
                *("--hidden-dim=64", "--intermediate-dim=128"),
                *("--num-heads=2", "--steps=300", "--warmup-steps=150"),
                *("--batch-tokens=512", "--steps-per-epoch=300", "--dropout=0.1"),
                f"--cache-dir={tmp_path / 'encoded'}",
                f"--precision={precision}",
                f"--run-dir={run_dir}",
            ]
        )
        (row,) = read_history(run_dir)
        losses[precision] = float(row["val_loss"])

    assert losses["float32"] < 5  # 7.3 is that of equal probabilities.
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.02)
    assert losses["float16"] == pytest.approx(losses["float32"], rel=0.02)
