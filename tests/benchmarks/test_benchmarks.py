"""Keeps the benchmarks alive, at toy size."""

import dataclasses
import importlib
import json
import math

import numpy as np
import pytest

from benchmarks import markup_accuracy, service_load
from benchmarks.decoding import __main__ as decoding, export_speed, package
from benchmarks.decoding.inputs import choose_batches, make_transformer
from benchmarks.decoding.worker import SYSTEMS, decode
from benchmarks.shared.interleaved_runs import NotMeasuredError
from benchmarks.shared.model_sizes import SIZES, make_batch
from benchmarks.training import (
    __main__ as training,
    corpus_cost,
    on_jax,
    worker as training_worker,
)
from command_line.errors import UserError
from tests.helpers.error_capture import refusal
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.python_subprocess import run_python

# Three sentences of six tokens, each decoded for as many.
BATCH = {
    "source_ids": [[9, 17, 5, 80, 44, 1], [23, 4, 6, 71, 5, 1], [8, 8, 31, 62, 90, 1]],
    "length": 6,
    "tokens": 18,
}


@pytest.mark.slow
def test_the_service_answers_as_the_plain_loop(export_dir, tmp_path, capsys):
    path = tmp_path / "sentences"
    path.write_text("".join(f"{text}\n" for text in SENTENCES))

    with pytest.raises(SystemExit) as ended:
        service_load.main(
            [f"--export-dir={export_dir}", f"--input={path}"]
            + ["--minutes=0.05", "--clients=3"]
        )

    report = json.loads(capsys.readouterr().out)
    assert not ended.value.code, report
    for load in (report["plain_loop"], *report["service"].values()):
        assert load["requests"] > 0
        assert 0 < load["p50_ms"] <= load["p99_ms"]
    assert len(report["memory_mib"]) == 3


@pytest.mark.slow
def test_latencies_are_measured_beside_another_client(export_dir, tmp_path, capsys):
    path = tmp_path / "sentences"
    path.write_text("".join(f"{text}\n" for text in SENTENCES))

    with pytest.raises(SystemExit):
        service_load.main(
            [f"--export-dir={export_dir}", f"--input={path}", "--latency=0.5"]
        )

    report = json.loads(capsys.readouterr().out)
    assert list(report) == [
        *("one_client", "two_clients"),
        *("beside_html", "beside_long_text", "beside_many_requests"),
    ]
    loads = [load for measured in report.values() for load in measured.values()]
    assert len(loads) == 8
    assert all(load["requests"] and not load["problems"] for load in loads)


@pytest.mark.slow
@pytest.mark.parametrize(
    "system",
    [
        *("package", "keras"),
        pytest.param("pytorch", marks=pytest.mark.peers("torch")),
        pytest.param("keras-hub", marks=pytest.mark.peers("keras_hub")),
    ],
)
def test_an_update_changes_the_loss(system):
    name, make, prepare = training_worker.SYSTEMS[system]
    module = importlib.import_module(f"benchmarks.training.{name}")
    batch = getattr(module, prepare)(make_batch(SIZES["check"], fill=0.75))
    update = getattr(module, make)(SIZES["check"], "float32")

    losses = [update(batch) for _ in range(2)]

    # That of equal probabilities is log(100) = 4.6.
    assert all(math.isfinite(loss) and 4 < loss < 7 for loss in losses)
    assert losses[0] != losses[1]


@pytest.mark.slow
def test_the_model_trains_on_jax():
    said = run_python(
        *("-m", "benchmarks.training.on_jax", "--sizes", "check"),
        *("--steps", "2", "--repetitions", "1", "--product-width", "64"),
        backend="jax",
    )

    *_, row = said.splitlines()
    name, system, _, _, _, loss = row.strip("| ").split(" | ")
    assert (name, system) == ("check", "package")
    assert 4 < float(loss) < 7


def test_training_on_jax_needs_that_backend(capsys):
    assert "KERAS_BACKEND must be jax" in refusal(capsys, on_jax.main, [])


def test_tags_are_measured_on_a_model_of_the_grammar_alone(export_dir, capsys):
    arguments = ["--export-dir", export_dir, "--sentences", 3]
    line = refusal(capsys, markup_accuracy.main, arguments)

    assert "translates none of 3 sentences" in line


def test_batches_are_of_neighbours_and_evenly_taken():
    order = [5, 1, 8, 2, 7, 3, 6, 4, 9]

    batches = choose_batches(order, batch_size=2, sentences=4)

    assert sorted(batches) == [[6, 4], [8, 2]]
    with pytest.raises(UserError, match="Received: 10, and 9 sentences"):
        choose_batches(order, batch_size=10, sentences=4)


def test_students_are_decoded_by_systems_of_the_package_alone(capsys):
    arguments = ["--sizes", "6-2", "--systems", "keras-hub"]
    line = refusal(capsys, decoding.main, arguments)

    assert "--systems of package" in line
    assert "Received: keras-hub" in line


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A model that decodes a given number of tokens, and its folder."""
    folder = tmp_path_factory.mktemp("decoding")
    (folder / "run").mkdir()
    transformer = make_transformer(SIZES["check"])
    transformer.save(folder / "run" / "model.keras")
    return transformer, folder


def test_a_random_model_decodes_as_long_as_it_is_told(endless):
    transformer, folder = endless
    translate = package.make(folder, 1, "float32")

    found = decode(translate, [BATCH])["outputs"]

    # Greedy search, by the whole target again at each step.
    ids = np.full((3, 1), 3)
    for _ in range(5):
        inputs = {"source_ids": np.array(BATCH["source_ids"]), "target_ids": ids}
        best = np.argmax(transformer(inputs)[:, -1], axis=-1)
        ids = np.concatenate([ids, best[:, None]], axis=1)
    ends = np.ones((3, 1))
    np.testing.assert_array_equal(found, np.hstack([ids[:, 1:], ends]))


@pytest.mark.parametrize(
    "system",
    [
        pytest.param("keras-hub", marks=pytest.mark.peers("keras_hub")),
        pytest.param("hugging-face", marks=pytest.mark.peers("torch", "transformers")),
    ],
)
def test_a_peer_decodes_as_long_as_it_is_told(system, endless):
    _, folder = endless
    size = dataclasses.asdict(SIZES["check"])
    (folder / "size.json").write_text(json.dumps(size))
    name, *options = SYSTEMS[system]
    make = importlib.import_module(f"benchmarks.decoding.{name}").make

    found = decode(make(folder, *options), [BATCH])["outputs"]

    assert [len(ids) for ids in found] == [6, 6, 6]
    if system == "keras-hub":  # Its weights are those of the package.
        ours = decode(package.make(folder, *options), [BATCH])["outputs"]
        # Ours ends at the limit, in place of the last token.
        assert [ids[:-1] for ids in ours] == [ids[:-1] for ids in found]


def test_a_system_that_decodes_less_is_left_out():
    with pytest.raises(NotMeasuredError, match="2 tokens instead of 3"):
        decode(lambda batch: [[7, 7]], [{"length": 3}])


@pytest.mark.slow
def test_exports_of_the_same_folder_name_are_all_measured(export_dir, tmp_path, capsys):
    source = tmp_path / "source"
    source.write_text("\n".join(SENTENCES))
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / export_dir.name
    other.symlink_to(export_dir)

    export_speed.main(
        [
            *("--export-dir", str(export_dir), str(other), f"--source={source}"),
            *("--sentences=2", "--repetitions=1"),
        ]
    )

    _, *rows = capsys.readouterr().out.splitlines()
    for row, system in zip(rows, [export_dir] * 2 + [other] * 2, strict=True):
        assert row.startswith(f"{system}, ")
        assert row.endswith("2 of 2")


@pytest.mark.slow
def test_systems_decode_side_by_side(run_dir, tmp_path, monkeypatch, capsys):
    (tmp_path / "keras_hub.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("source", "reference"):
        (tmp_path / name).write_text("\n".join(SENTENCES * 2))
    output = tmp_path / "decoding.json"

    decoding.main(
        [
            *("--sizes=check", "--vocabulary-size=400", "--sentences=4"),
            *("--batch-sizes", "1", "2", "--repetitions=2", "--threads=1"),
            *("--systems", "package", "keras-hub"),
            *("--source", str(tmp_path / "source")),
            *("--reference", str(tmp_path / "reference")),
            *("--output", str(output), "--run-dir", str(run_dir)),
        ]
    )

    rows = json.loads(output.read_text())["rows"]
    assert [(row["model"], row["batch"], len(row["seconds"])) for row in rows] == [
        (model, batch_size, 3)
        for model in ("trained", "check, 400")
        for batch_size in (1, 2)
    ]
    assert all(row["same_as_package"] == 1 for row in rows)
    printed = capsys.readouterr().out
    assert "check, 400: keras-hub is left out: not here" in printed
    assert printed.count("| package | ") == 4


@pytest.mark.slow
def test_updates_are_measured_side_by_side(tmp_path, capsys):
    output = tmp_path / "training.json"

    training.main(
        [
            *("--sizes=check", "--precisions=float32"),
            *("--systems", "package", "keras", "--repetitions=2", "--steps=1"),
            *("--output", str(output)),
        ]
    )

    rows = json.loads(output.read_text())["rows"]
    assert [(row["fill"], row["system"], len(row["seconds"])) for row in rows] == [
        (fill, system, 2) for fill in (0.75, 1.0) for system in ("package", "keras")
    ]
    # The package computes logits for real tokens only.
    assert rows[0]["flops"] < rows[1]["flops"] == rows[2]["flops"] == rows[3]["flops"]
    assert capsys.readouterr().out.count(" × | ") == 2


@pytest.mark.slow
def test_the_cost_of_a_corpus_is_measured(capsys):
    corpus_cost.main(["--pairs", "300", "600"])

    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "| pairs | 300 | 600 | 36 million (by the slope) |"
    assert len(rows) == len(corpus_cost.UNITS)
