"""Tests of `train.loop.update_options`."""

import pytest

from command_line.errors import UserError
from tests.helpers.small_models import make_ids
from train.data.vocabulary import EncodedPairs
from train.loop.update_options import UpdateOptions

SHORT = make_ids([(0, 3), (1, 5)], 4)
LONG = make_ids([(0, 2), (1, 7)], 4)


@pytest.mark.parametrize(
    "corpora",
    [
        [EncodedPairs(LONG, SHORT), EncodedPairs(SHORT, SHORT)],
        [EncodedPairs(SHORT, SHORT), EncodedPairs(SHORT, LONG)],
    ],
)
def test_a_limit_must_hold_the_longest_sentence(corpora):
    for limit in (None, 7, 500):
        UpdateOptions(max_tokens_per_replica=limit).check_limit(corpora)
    with pytest.raises(UserError, match=r"sentence, 7 tokens;.*replica 6$"):
        UpdateOptions(max_tokens_per_replica=6).check_limit(corpora)
