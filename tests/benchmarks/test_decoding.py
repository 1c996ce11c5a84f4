"""Keeps `benchmarks.decoding` alive, at toy size."""

import dataclasses
import json

import numpy as np
import pytest

from benchmarks.decoding import __main__ as decoding, systems
from benchmarks.decoding.inputs import choose_batches, make_transformer
from benchmarks.decoding.worker import decode
from benchmarks.interleaved_runs import NotMeasuredError
from benchmarks.model_sizes import SIZES
from command_line.errors import UserError
from tests.helpers.error_capture import refusal
from tests.helpers.example_sentences import SENTENCES

# Three sentences of six tokens, each decoded for as many.
BATCH = {
    "source_ids": [[9, 17, 5, 80, 44, 1], [23, 4, 6, 71, 5, 1], [8, 8, 31, 62, 90, 1]],
    "length": 6,
    "count": 18,
}


def test_batches_are_of_neighbours_and_evenly_taken():
    order = [5, 1, 8, 2, 7, 3, 6, 4, 9]

    batches = choose_batches(order, batch_size=2, sentences=4)

    assert sorted(batches) == [[6, 4], [8, 2]]
    with pytest.raises(UserError, match="Received: 10, and 9 sentences"):
        choose_batches(order, batch_size=10, sentences=4)


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A model that decodes a given number of tokens, and its folder."""
    folder = tmp_path_factory.mktemp("decoding")
    (folder / "run").mkdir()
    transformer = make_transformer(SIZES["check"])
    transformer.save(folder / "run" / "model.keras")
    size = dataclasses.asdict(SIZES["check"])
    (folder / "size.json").write_text(json.dumps(size))
    return transformer, folder


def test_a_random_model_decodes_as_long_as_it_is_told(endless):
    transformer, folder = endless
    translate = systems.load_package(systems.Setting(folder, 1, beam_size=1))

    found = decode(translate, [BATCH])["outputs"]

    # Greedy search, by the whole target again at each step.
    ids = np.full((3, 1), 3)
    for _ in range(5):
        inputs = {"source_ids": np.array(BATCH["source_ids"]), "target_ids": ids}
        best = np.argmax(transformer(inputs)[:, -1], axis=-1)
        ids = np.concatenate([ids, best[:, None]], axis=1)
    np.testing.assert_array_equal(found, ids[:, 1:])


@pytest.mark.parametrize(
    "system",
    [
        pytest.param("keras-hub", marks=pytest.mark.peers("keras_hub")),
        pytest.param("hugging-face", marks=pytest.mark.peers("torch", "transformers")),
    ],
)
def test_a_peer_decodes_as_long_as_it_is_told(system, endless):
    _, folder = endless
    load, *settings = systems.SYSTEMS[system]
    setting = systems.Setting(folder, 1, *settings)

    found = decode(load(setting), [BATCH])["outputs"]

    assert [len(ids) for ids in found] == [5, 5, 5]  # Without the last.
    if system == "keras-hub":  # Its weights are those of the package.
        assert found == decode(systems.load_package(setting), [BATCH])["outputs"]


def test_a_system_that_decodes_less_is_left_out():
    with pytest.raises(NotMeasuredError, match="2 tokens instead of 3"):
        decode(lambda batch: [[7, 7]], [{"length": 3}])


def test_ends_are_not_compared():
    trained = decode(lambda batch: [[7, 7, 1], [8]], [{"length": None}])
    assert trained["outputs"] == [[7, 7], [8]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch-sizes", "2", "0"], "--batch-sizes must be at least 1"),
        (["--source", "x"], "--source and --reference must come together"),
        (["--export-dir", "x"], "must come with --source"),
    ],
)
def test_refuses_what_cannot_be_measured(capsys, arguments, message):
    assert message in refusal(capsys, decoding.main, arguments)


def show_rows(text):
    """Returns the cells of the tables that were printed, without heads."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if "|" in line]
    return [row for row in rows if row[0] != "model" and not row[0].startswith("--")]


@pytest.mark.slow
def test_systems_decode_side_by_side(run_dir, tmp_path, monkeypatch, capsys):
    (tmp_path / "keras_hub.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("source", "reference"):
        (tmp_path / name).write_text("\n".join(SENTENCES * 2))

    decoding.main(
        [
            *("--sizes=check", "--vocabulary-size=400", "--sentences=4"),
            *("--batch-sizes", "1", "2", "--repetitions=2"),
            *("--systems", "package", "litert", "keras-hub"),
            *("--source", str(tmp_path / "source")),
            *("--reference", str(tmp_path / "reference")),
            *("--run-dir", str(run_dir)),
        ]
    )

    printed = capsys.readouterr().out
    assert "check, 400: keras-hub is left out: not here" in printed
    rows = show_rows(printed)
    assert [row[:3] for row in rows] == [
        [model, batch_size, system]
        for model in ("trained", "check, 400")
        for batch_size in ("1", "2")
        for system in ("package", "litert")
    ]
    assert [row[-2] for row in rows] == ["100%"] * 8
    assert [row[-3] for row in rows[::2]] == ["1.00 ×"] * 4


@pytest.mark.slow
def test_exports_of_the_same_folder_name_are_all_measured(export_dir, tmp_path, capsys):
    source = tmp_path / "source"
    source.write_text("\n".join(SENTENCES))
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / export_dir.name
    other.symlink_to(export_dir)

    decoding.main(
        [
            *("--export-dir", str(export_dir), str(other), f"--source={source}"),
            *("--sentences=2", "--batch-sizes", "1", "--repetitions=1"),
        ]
    )

    rows = show_rows(capsys.readouterr().out)
    assert [row[2] for row in rows] == [str(export_dir), str(other)]
    assert all(row[-2] == "100%" for row in rows)
