"""The SavedModel behind the interfaces of TF Serving, alone and under load."""

import concurrent.futures
import json

import numpy as np
import pytest

from tests.helpers.example_sentences import NASTY, SENTENCES
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.signature_requests import (
    REQUESTS,
    ask,
    assert_same,
    differences,
    nbest_inputs,
    to_rows,
)
from tests.load import connect, main, predict

TEXTS = [*(s.encode() for s in SENTENCES), *NASTY]


@pytest.fixture(scope="module")
def stub(servable):
    with serve_grpc(servable) as address, connect(address) as stub:
        yield stub


def test_missing_options_come_from_the_signature(stub):
    """The fixture was exported with beam 3, α 0.6 and 8 more tokens."""
    inputs = nbest_inputs(TEXTS, beam_size=3, alpha=0.6, extra=8)
    expected = predict(stub, "translate_nbest", inputs)

    found = predict(stub, "translate_nbest", ask(TEXTS))
    assert found.keys() == expected.keys()
    assert_same(found, expected)
    one = {**ask(TEXTS), "beam_size": np.int32(1)}
    found = predict(stub, "translate_nbest", one)
    assert found["translation"].shape == (len(TEXTS), 1)


@pytest.mark.parametrize("signature", sorted({*REQUESTS} - {"translate_nbest"}))
def test_requests_in_one_batch_are_answered_as_alone(signature, servable):
    parts = [TEXTS[:1], TEXTS[1:3], TEXTS[3:9], TEXTS[9:]]
    all_inputs = [REQUESTS[signature](part) for part in parts]
    batching = servable.with_batching(
        timeout=60,
        closes_at=len(parts),
        pad_variable_length_inputs=True,
        allowed_batch_sizes=(8, 32),
    )

    with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
        answers = pool.map(
            lambda inputs: batching.predict(signature, inputs), all_inputs
        )

    batching = batching.batching
    assert batching.batch_sizes == [len(parts)]
    assert batching.rows == [32]
    for inputs, outputs in zip(all_inputs, answers, strict=True):
        expected = servable.predict(signature, inputs)
        pairs = zip(to_rows(outputs), to_rows(expected), strict=True)
        for found, alone in pairs:
            assert not differences(found, alone)


@pytest.mark.slow
def test_many_clients_get_right_answers_in_bounded_memory(export_dir, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--export-dir", str(export_dir), "--minutes", "0.1", "--texts", "12"])

    report = json.loads(capsys.readouterr().out)
    assert not ended.value.code, report
    assert report["errors"] == report["wrong"] == 0
    assert report["requests"] >= 8
    # Eight clients, and four copies of the numbers of given pairs, 2^26, in each
    # request, and as much for its texts.
    assert report["before_mib"] < report["peak_mib"] < report["before_mib"] + 8 * 2048


def test_a_wrong_answer_is_seen():
    alone = {"score": np.float32(-1.0), "ids": np.array([4, 1])}

    right = {"score": np.float32(-1.000001), "ids": np.array([4, 1, 0, 0])}
    for wrong in (
        {**right, "score": np.float32(-1.001)},
        {**right, "ids": np.array([4, 1, 5, 0])},
        {**right, "ids": np.array([4])},
        {"score": right["score"]},
    ):
        assert differences(wrong, alone)

    assert not differences(right, alone)
