"""The SavedModel behind the interface of TF Serving, asked by many clients at once."""

import concurrent.futures
import itertools
import resource

import numpy as np
import pytest

from tests.helpers.example_sentences import make_string
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.signature_requests import (
    REQUESTS,
    ask,
    differences,
    invalid_outputs,
    nbest_inputs,
    options_inputs,
    to_rows,
)
from translate.runtime.tf_serving import RefusedRequestError, make_sender

CLIENTS = 8
LONG = b"word " * 2_000
# The largest requests, and what their refusals contain.
LARGEST = [
    ("serving_default", ask([LONG] * 1_000), None),
    ("serving_default", ask([b"a"] * 1_000), None),
    ("serving_default", ask([b"abc " * 1_000_000]), None),
    ("serving_default", ask([b"\xff" * 4_000_000]), None),
    ("translate_nbest", nbest_inputs([b"a b"] * 32, 100, extra=1_000), None),
    ("translate_nbest", nbest_inputs([LONG] * 1_000, 100), "must be at most"),
    ("translate_nbest", nbest_inputs([b"a"], 101), "between 1 and 100"),
    ("translate_options", options_inputs([LONG] * 2, np.full(2, np.nan)), None),
    ("score", REQUESTS["score"]([LONG] * 100), None),
    ("explain", REQUESTS["explain"]([b"word " * 40] * 4_000), "must be at most"),
]


@pytest.mark.slow
def test_many_clients_get_right_answers_in_bounded_memory(servable):
    random = np.random.default_rng(0)
    texts = [make_string(random) for _ in range(12)]
    alone = {
        (name, text): to_rows(servable.predict(name, REQUESTS[name]([text])))[0]
        for name, text in itertools.product(REQUESTS, texts)
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def send_largest(send):
        for name, inputs, refusal in LARGEST:
            if refusal is None:
                assert not invalid_outputs(send(name, inputs))
            else:
                with pytest.raises(RefusedRequestError, match=refusal):
                    send(name, inputs)

    def send_some(send, seed):
        random = np.random.default_rng(seed)
        for name in random.permutation([*REQUESTS] * 3).tolist():
            asked = [texts[i] for i in random.integers(len(texts), size=seed)]
            rows = to_rows(send(name, REQUESTS[name](asked)))
            for row, text in zip(rows, asked, strict=True):
                assert not differences(row, alone[name, text])

    with (
        serve_grpc(servable) as address,
        concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool,
    ):
        send = make_sender(address, servable.name, timeout=600)
        clients = [pool.submit(send_largest, send) for _ in range(2)]
        clients += [pool.submit(send_some, send, 1 + n) for n in range(CLIENTS - 2)]
        for client in clients:
            client.result()

    # Four copies of the numbers of given pairs, 2^26, in each request, and as much
    # for its texts.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert peak - before < CLIENTS * 2**21  # KiB.
