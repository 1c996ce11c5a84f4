"""Keeps `benchmarks.decoding` alive, at toy size."""

import dataclasses
import json
import re

import pytest

from benchmarks.constants import SIZES
from benchmarks.decoding import __main__ as decoding, loading, systems
from benchmarks.decoding.inputs import choose_batches, make_cases, make_transformer
from benchmarks.decoding.worker import decode
from benchmarks.interleaved_runs import NotMeasuredError, Threads
from command_line.errors import UserError
from tests.helpers.error_capture import refusal
from tests.helpers.example_sentences import SENTENCES

# Three sentences of six tokens, each decoded for as many.
IDS = [[9, 17, 5, 80, 44, 1], [23, 4, 6, 71, 5, 1], [8, 8, 31, 62, 90, 1]]
BATCH = {"texts": ["a", "b", "c"], "length": 6, "extra_length": 0, "count": 18}


class Tokenizer:
    """Encodes the texts of `BATCH`, and leaves ids as they are."""

    def encode(self, texts, add_eos):
        return [IDS["abc".index(text)] for text in texts]

    def decode(self, ids):
        return ids


@pytest.fixture(autouse=True)
def tokenizer(monkeypatch):
    monkeypatch.setattr(loading, "load_tokenizer", lambda setting: Tokenizer())


def test_batches_are_of_neighbours_and_evenly_taken():
    order = [5, 1, 8, 2, 7, 3, 6, 4, 9]

    batches = choose_batches([order], batch_size=2, sentences=4)

    assert sorted(batches) == [[6, 4], [8, 2]]
    with pytest.raises(UserError, match="Received: 10, and 9 sentences"):
        choose_batches([order], batch_size=10, sentences=4)


def test_sources_of_a_batch_of_a_random_model_are_equally_long():
    texts, sources, targets = list("abcdef"), [3, 2, 3, 2, 3, 1], [5, 4, 6, 7, 2, 9]
    options = {"batch_sizes": [2], "sentences": 8}

    (first, second) = make_cases(texts, sources, targets, True, options)["batch 2"]

    found = sorted([first, second], key=lambda batch: batch["texts"])
    assert found == [
        {"texts": ["b", "d"], "length": 7, "extra_length": 5, "count": 14},
        {"texts": ["e", "a"], "length": 5, "extra_length": 2, "count": 10},
    ]


def test_workers_translate_parts_of_a_batch():
    parts = []

    def translate(batch):
        parts.append(batch["texts"])
        return [text.upper() for text in batch["texts"]]

    translate = loading.in_parts(loading.Setting(None, Threads(workers=2)), translate)

    assert translate({"texts": ["a", "b", "c"]}) == ["A", "B", "C"]
    assert sorted(parts) == [["a", "c"], ["b"]]
    assert translate({"texts": ["d"]}) == ["D"]


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """The folder of a model that decodes a given number of tokens."""
    folder = tmp_path_factory.mktemp("decoding")
    (folder / "run").mkdir()
    make_transformer(SIZES["check"]).save(folder / "run" / "model.keras")
    size = dataclasses.asdict(SIZES["check"])
    (folder / "size.json").write_text(json.dumps(size))
    return folder


@pytest.mark.parametrize(
    "system",
    [
        pytest.param("keras-hub", marks=pytest.mark.peers("keras_hub")),
        pytest.param("hugging-face", marks=pytest.mark.peers("torch", "transformers")),
    ],
)
def test_a_peer_decodes_as_long_as_it_is_told(system, endless):
    load, *settings = systems.SYSTEMS[system]
    setting = loading.Setting(endless, Threads(), *settings)

    found = decode(load(setting), [BATCH])["outputs"]

    assert [len(ids) for ids in found] == [5, 5, 5]  # Without the last.
    if system == "keras-hub":  # Its weights are those of the package.
        own = decode(systems.load_package(setting), [BATCH])["outputs"]
        # The last token, EOS here and another there, may decide between hypotheses.
        assert sum(a == b for a, b in zip(found, own, strict=True)) >= 2


def test_ends_are_not_compared():
    assert loading.cut_ends([[7, 7, 1], [8]], length=None) == [[7, 7], [8]]
    with pytest.raises(NotMeasuredError, match="2 tokens instead of 3"):
        loading.cut_ends([[7, 7]], length=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch-sizes", "2", "0"], "--batch-sizes must be at least 1"),
        (["--source", "x"], "--source and --reference must come together"),
        (["--export-dir", "x"], "must come with --source"),
        (["--export-dir", "x", "--source", "y"], "Received: x"),
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
    assert "check, 400, batch 1: keras-hub is left out: not here" in printed
    rows = show_rows(printed)
    assert [row[:3] for row in rows] == [
        [model, batch_size, system]
        for model in ("trained", "check, 400")
        for batch_size in ("1", "2")
        for system in ("package", "litert")
    ]
    assert [row[-2] for row in rows] == ["100%"] * 8
    assert [row[-3] for row in rows[::2]] == ["1.00 ×"] * 4
    assert all(re.fullmatch(r"\d+ × \d+", row[3]) for row in rows)


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
