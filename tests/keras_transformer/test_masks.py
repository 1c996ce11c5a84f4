import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import causal_mask, padding_mask


def matrix(*rows):
    """Reads a mask as it is printed: `1` may be used, `.` may not."""
    return np.array([[sign == "1" for sign in row] for row in rows])


def test_padding_is_id_0_and_nothing_else():
    ids = np.array([[7, 5, 3, 0], [1, 0, 0, 0], [0, -1, 2, 9]])

    mask = padding_mask(ids)

    assert mask.dtype == "bool"
    np.testing.assert_array_equal(mask, matrix("111.", "1...", ".111"))


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((4,), ["1...", "11..", "111.", "1111"]),
        ((2, 5), ["1....", "11..."]),
        ((4, 2), ["1.", "11", "11", "11"]),
    ],
)
def test_a_position_sees_itself_and_earlier_ones(lengths, expected):
    mask = causal_mask(*lengths)

    assert mask.dtype == "bool"
    np.testing.assert_array_equal(mask, matrix(*expected))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sizes_may_be_tensors_of_a_graph(dtype):
    """Of queries, keys, and what a cache holds before the queries."""
    traced = tf.function(causal_mask)

    mask = traced(*(tf.constant(size, dtype) for size in (2, 6, 3)))

    np.testing.assert_array_equal(mask, causal_mask(2, 6, start_index=3))
    np.testing.assert_array_equal(mask, matrix("1111..", "11111."))
