"""Keeps the benchmarks alive, at toy size."""

import json
import math
import re

import numpy as np
import pytest

from benchmarks.decoding import __main__ as decoding
from benchmarks.decoding import first_requests
from benchmarks.decoding import like_lengths
from benchmarks.decoding import package
from benchmarks.decoding.inputs import choose_batches
from benchmarks.decoding.inputs import make_random_batch
from benchmarks.decoding.inputs import make_transformer
from benchmarks.decoding.report import fit_batch_size
from benchmarks.decoding.report import fit_length
from benchmarks.decoding.report import make_row
from benchmarks.decoding.report import print_goals
from benchmarks.decoding.worker import WrongWorkError
from benchmarks.decoding.worker import decode
from benchmarks.shared.sizes import SIZES
from benchmarks.shared.sizes import count_source_weights
from benchmarks.shared.sizes import count_step_weights
from benchmarks.shared.sizes import make_batch
from benchmarks.training import growth
from benchmarks.training import parts
from benchmarks.training.keras_systems import make_keras_update
from benchmarks.training.keras_systems import make_package_update
from benchmarks.training.keras_systems import prepare_package
from benchmarks.training.keras_systems import prepare_tuples
from command_line.errors import UserError
from tests.helpers.sentences import SENTENCES


@pytest.mark.parametrize(
    ("make", "prepare"),
    [
        (make_package_update, prepare_package),
        (make_keras_update, prepare_tuples),
    ],
)
def test_an_update_changes_the_loss(make, prepare):
    batch = prepare(make_batch(SIZES["check"], fill=0.75))
    update = make(SIZES["check"], "float32")

    losses = [update(batch) for _ in range(2)]

    # That of equal probabilities is log(100) = 4.6.
    assert all(math.isfinite(loss) and 4 < loss < 7 for loss in losses)
    assert losses[0] != losses[1]


def test_the_parts_of_an_update_add_up(capsys):
    parts.main(["--size=check", "--repetitions=1"])

    rows = capsys.readouterr().out.splitlines()[2:]
    *some, whole = [float(row.split("|")[2]) for row in rows]
    assert sum(some) == pytest.approx(whole, abs=0.003)


def test_a_ring_carries_almost_everything_twice():
    assert growth.ring_seconds(100.0, 1, 10.0) == 0
    assert growth.ring_seconds(100.0, 5, 10.0) == pytest.approx(16)


def test_batches_are_of_neighbours_and_evenly_taken():
    order = [5, 1, 8, 2, 7, 3, 6, 4, 9]

    batches = choose_batches(order, batch_size=2, sentences=4)

    assert sorted(batches) == [[6, 4], [8, 2]]
    with pytest.raises(UserError, match="Received: 10, and 9 sentences"):
        choose_batches(order, batch_size=10, sentences=4)


def test_a_batch_is_paired_with_one_of_its_mean_length():
    lines = [b"x" * (i % 80) for i in range(like_lengths.WINDOW)]
    others = [b"y" * (i % 70) for i in range(70_000)]

    pairs = like_lengths.pair_batches(lines + others, len)

    for mixed, equal in pairs:
        assert len(mixed) == len(equal)
        [length] = set(map(len, equal))
        assert abs(length - np.mean([len(line) for line in mixed])) <= 0.5
    # The others have no line of 70 bytes or more.
    used = [line for mixed, _ in pairs for line in mixed]
    assert set(map(len, used)) >= set(range(65))
    assert max(map(len, used)) < 75
    with pytest.raises(UserError, match="more than 2,048 lines. Received: 9"):
        like_lengths.pair_batches(lines[:9], len)


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A model that decodes for as long as it is told, and its folder."""
    folder = tmp_path_factory.mktemp("decoding")
    (folder / "run").mkdir()
    transformer = make_transformer(SIZES["check"])
    transformer.save(folder / "run" / "model.keras")
    return transformer, folder


def test_a_random_model_decodes_as_long_as_it_is_told(endless):
    transformer, folder = endless
    batch = make_random_batch(SIZES["check"].vocabulary_size, 3, 6)
    translate = package.make(folder, beam_size=1)

    found = decode(translate, [batch])["outputs"]

    # Greedy search, by the whole target again at each step.
    ids = np.full((3, 1), 3)
    for _ in range(5):
        inputs = {
            "source_ids": np.array(batch["source_ids"]),
            "target_ids": ids,
        }
        best = np.argmax(transformer(inputs)[:, -1], axis=-1)
        ids = np.concatenate([ids, best[:, None]], axis=1)
    ends = np.ones((3, 1))
    np.testing.assert_array_equal(found, np.hstack([ids[:, 1:], ends]))


def test_a_system_that_decodes_less_is_left_out():
    with pytest.raises(WrongWorkError, match="2 tokens instead of 3"):
        decode(lambda batch: [[7, 7]], [{"length": 3}])


class Decoded:
    """A system that decoded two batches of one sentence, three times."""

    left_out = None

    def __init__(self, system, *seconds):
        self.system = system
        self.rounds = [
            {
                "case": "batch 1",
                "seconds": times,
                "outputs": ["a", "b"],
                "peak_bytes": place,
            }
            for place, times in enumerate(seconds)
        ]


def test_the_first_time_is_told_apart(capsys):
    batches = [{"tokens": 5}, {"tokens": 7}]
    rows = [
        make_row(Decoded(system, *seconds), "batch 1", batches)
        for system, seconds in (
            ("package", ([3.0, 9.0], [1.0, 2.0], [2.0, 3.0], [1.0, 3.0])),
            ("ctranslate2", ([1.0, 2.0], [0.5, 1.0], [0.5, 1.0], [1.0, 1.0])),
        )
    ]

    print_goals("trained", rows)

    assert rows[0]["first_time"]["tokens_per_second"] == 1
    assert rows[0]["first_time"]["latencies"][0] == 6
    assert rows[0]["again"]["tokens_per_second"] == 3
    assert rows[0]["again"]["least_tokens_per_second"] == 2.4
    assert rows[0]["again"]["latencies"] == pytest.approx([2, 3, 3])
    assert rows[0]["peak_bytes"] == 0
    table = capsys.readouterr().out
    assert "| package | ctranslate2 | 1 | 0.5 × | 0.25 × | 0.38 × |" in table
    assert "| 32 | 1.0 × | not measured | not measured |" in table


def test_a_command_without_a_model_is_refused(capsys):
    with pytest.raises(SystemExit):
        decoding.parse_arguments(["--sizes"])

    assert "--sizes must name a model" in capsys.readouterr().err


def test_sentences_are_dealt_by_length():
    lines = [b"x" * length for length in (0, *range(1, 13), 1)]

    groups = first_requests.deal(lines, 4)

    assert sorted(line for group in groups for line in group) == lines[1:-1]
    for group in groups:
        assert sorted((len(line) - 1) // 3 for line in group) == [0, 1, 2, 3]
    with pytest.raises(UserError, match="Received: 5, and 12 lines"):
        first_requests.deal(lines, 5)


def test_a_request_is_compared_with_those_of_its_length(monkeypatch):
    monkeypatch.setattr(first_requests, "NEIGHBOURS", 3)
    lengths = np.array([9, 2, 9, 2, 8, 3])
    seconds = np.array([9.0, 2.0, 10.0, 2.0, 27.0, 5.0])

    ratios = first_requests.times_the_median(lengths, seconds)

    np.testing.assert_allclose(ratios, [0.9, 1, 1, 1, 2.7, 2.5])


def test_the_first_requests_of_a_server(export_dir, tmp_path, capsys):
    source = tmp_path / "source"
    source.write_text("\n".join(SENTENCES))
    arguments = ["--export-dir", str(export_dir), "--source", str(source)]

    first_requests.main([*arguments, "--sentences=2", "--cold"])

    out = capsys.readouterr().out
    assert "0.0 for 0 warm-up requests" in out
    for name in ("first", "next", "later"):
        assert re.search(rf"\| {name} 2 \|( [\d.,]+ \|){{4}}", out)
    assert " of 6 requests take more than twice the median" in out


def test_the_fits_find_the_slopes_of_a_curve():
    by_length = [(n, 0.5 + 0.25 * n + 0.125 * n**2) for n in (8, 16, 32, 64)]
    by_size = [(b, 0.5 + 0.125 * b) for b in (1, 4, 16)]

    assert fit_length(by_length) == pytest.approx((0.25, 0.25))
    assert fit_batch_size(by_size) == pytest.approx((0.5, 0.125))


def test_every_matrix_is_counted_once(endless):
    transformer, _ = endless
    matrices = {
        weight.path: math.prod(weight.shape)
        for weight in transformer.weights
        if len(weight.shape) == 2
    }
    of_source = sum(
        count
        for path, count in matrices.items()
        if "/encoder/" in path
        or "memory_attention/key" in path
        or "memory_attention/value" in path
    )

    assert of_source == count_source_weights(SIZES["check"])
    assert sum(matrices.values()) - of_source == count_step_weights(
        SIZES["check"]
    )


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
            *("--curve-systems", "--output", str(output)),
            *("--run-dir", str(run_dir)),
        ]
    )

    results = json.loads(output.read_text())
    assert [
        (row["model"], row["batch_size"], len(row["again"]["all_seconds"]))
        for row in results["rows"]
    ] == [
        (model, batch_size, 2)
        for model in ("trained", "check, 400")
        for batch_size in (1, 2)
    ]
    assert [row["system"] for row in results["left_out"]] == ["keras-hub"]
    assert "| keras-hub | not here |" in capsys.readouterr().out
