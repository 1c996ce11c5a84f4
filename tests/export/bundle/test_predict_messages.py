"""Tests of `export.bundle.predict_messages`."""

import numpy as np

from export.bundle.predict_messages import make_request, serialize


def test_equal_tensors_give_equal_bytes():
    # Of few names a map may happen to keep one order.
    names = [f"input {number}" for number in range(50)]
    messages = {
        serialize(make_request("mine", "", dict.fromkeys(order, np.ones(1))))
        for order in (names, names[::-1])
    }

    assert len(messages) == 1
