import pytest

from command_line.errors import UserError
from keras_transformer import PRESETS, TransformerSchedule, WarmupDecay
from tests.helpers.small_runs import make_ids
from train.data.encoded_pairs import EncodedPairs
from train.loop.training_options import TrainingOptions

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
        TrainingOptions(max_tokens_per_replica=limit).check_limit(corpora)
    with pytest.raises(UserError, match=r"sentence, 7 tokens;.*replica 6$"):
        TrainingOptions(max_tokens_per_replica=6).check_limit(corpora)


PRESET = PRESETS["tiny"].replace(hidden_dim=64, warmup_steps=25, steps=100)


@pytest.mark.parametrize(
    ("options", "kind", "peak"),
    [
        ({}, TransformerSchedule, 1 / 40),  # (64 * 25) ** -0.5
        ({"learning_rate_scale": 2.0}, TransformerSchedule, 2 / 40),
        ({"schedule": "linear"}, WarmupDecay, 1 / 40),
        ({"schedule": "cosine", "learning_rate_scale": 2.0}, WarmupDecay, 2 / 40),
        ({"schedule": "constant"}, WarmupDecay, 1 / 40),
    ],
)
def test_the_peak_is_the_papers_times_the_scale(options, kind, peak):
    settings = TrainingOptions(**options)
    settings.check_schedule(PRESET)

    schedule = settings.make_schedule(PRESET)

    assert type(schedule) is kind
    rates = [float(schedule(step)) for step in range(100)]
    assert max(rates) == rates[24] == pytest.approx(peak)
    if "schedule" in options:
        assert schedule.get_config()["decay"] == options["schedule"]
        assert schedule.get_config()["steps"] == 100
