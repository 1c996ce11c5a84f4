"""Tests of `keras_transformer.search.options`."""

import dataclasses

from keras_transformer.search.options import SearchOptions


def test_what_is_not_given_follows_what_is():
    options = dataclasses.replace(SearchOptions(), beam_size=3, bos_id=7)

    assert options.num_returned == 3
    assert options.never_chosen == (0, 7)
    assert SearchOptions(3, 0.6, 2, ()).num_returned == 2
    assert SearchOptions(3, 0.6, 2, ()).never_chosen == ()
