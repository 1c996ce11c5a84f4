import types

import keras
import pytest
import sacrebleu

from export.model.search import SearchSettings
from export.model.translator import Translator
from keras_transformer import SearchOptions
from keras_transformer.tokenizer import read_protos
from tests.helpers.example_sentences import SENTENCES
from train.data.corpus import Pairs
from train.fit import make_strategy
from train.monitoring import validation_bleu
from train.monitoring.validation_bleu import ValidationBleu
from train.run.early_stopping import ValidationOptions

# Out of the order of lengths; one without text, one beyond 40 tokens.
SOURCES = [SENTENCES[2], "", SENTENCES[1], " ".join(SENTENCES), SENTENCES[3]]


@pytest.fixture(scope="module")
def model(run_dir):
    model = keras.saving.load_model(run_dir / "model.keras", compile=False)
    table = model.embedding.embeddings.numpy()
    table[4:260] = 0  # Bytes are never chosen: it says words.
    model.embedding.embeddings.assign(table)
    return model


@pytest.fixture(scope="module")
def make_bleu(run_dir, model):
    """Makes the callback as `fit` does, for a model of random weights."""

    def make(references, transformer=None, **options):
        bleu = ValidationBleu(
            Pairs(SOURCES, references),
            read_protos(run_dir),
            ValidationOptions(**options),
        )
        bleu.set_model(types.SimpleNamespace(transformer=transformer or model))
        return bleu

    return make


def test_translates_as_the_export_does_also_on_replicas(
    run_dir, model, make_bleu, monkeypatch
):
    translator = Translator(model, read_protos(run_dir), SearchSettings())
    expected = [
        translator.translate([source])["translation"].numpy()[0].decode()
        for source in SOURCES
    ]
    # Some of what comes out is right, and some is not.
    references = [line[: len(line) * 2 // 3] for line in expected]
    references[1] = "text"
    monkeypatch.setattr(validation_bleu, "BATCH_ROWS", 2)
    logs = {}
    strategy = make_strategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        mirrored = type(model).from_config(model.get_config())
        mirrored.build()
        mirrored.set_weights(model.get_weights())
        bleu = make_bleu(references, mirrored)

        assert bleu.translate() == expected
        bleu.on_epoch_end(0, logs)

    assert logs["bleu"] == sacrebleu.corpus_bleu(expected, [references]).score
    assert 10 < logs["bleu"] < 90
    assert bleu._search.experimental_get_tracing_count() == 1


def test_searches_as_a_converted_run_says(run_dir, monkeypatch):
    asked = []

    def search(transformer, source_ids, limits, options):
        asked.append(options)
        return types.SimpleNamespace(ids=source_ids[:, None])

    monkeypatch.setattr(validation_bleu, "search_in_graph", search)
    bleu = ValidationBleu(
        Pairs(["A cat."], ["A cat."]),
        read_protos(run_dir),
        ValidationOptions(validation_beam_size=3),
        decoding={"beam_size": 9, "length_penalty": 0.9, "penalty_offset": 0},
    )
    transformer = types.SimpleNamespace(sequence_length=9)
    bleu.set_model(types.SimpleNamespace(transformer=transformer))

    bleu.translate()

    assert asked == [SearchOptions(3, 0.9, 1, penalty_offset=0)]


def test_only_every_nth_round_has_a_bleu(make_bleu, monkeypatch):
    bleu = make_bleu(SENTENCES[:5], validate_bleu=2)
    monkeypatch.setattr(bleu, "translate", lambda: SENTENCES[:5])
    rounds = [{}, {}, {}, {}]

    for epoch, logs in enumerate(rounds):
        bleu.on_epoch_end(epoch, logs)

    scores = {"bleu", "chrf"}
    assert [set(logs) for logs in rounds] == [set(), scores, set(), scores]
    assert rounds[1]["bleu"] == pytest.approx(100)


def test_each_two_languages_have_a_score_beside_the_mean(run_dir):
    said = ["the red cat sleeps now", "猫が寝ている。", "two red dogs run there", "x"]
    references = [said[0], "猫は寝ている。", "two dogs run out there", "xy"]
    bleu = ValidationBleu(
        Pairs(SOURCES[:4], references),
        read_protos(run_dir),
        groups={"en-de": ("13a", [0, 2]), "en-ja": ("char", [3, 1])},
    )

    scores = bleu.score(said)

    german = sacrebleu.corpus_bleu(said[::2], [references[::2]]).score
    japanese = sacrebleu.corpus_bleu(said[1::2], [references[1::2]], tokenize="char")
    assert scores["bleu_en-de"] == german
    assert scores["bleu_en-ja"] == japanese.score
    assert 10 < japanese.score < german < 90
    assert scores["bleu"] == pytest.approx((german + japanese.score) / 2)
    chrf = sacrebleu.corpus_chrf(said[::2], [references[::2]]).score
    assert scores["chrf_en-de"] == chrf
    assert scores["chrf"] == (chrf + scores["chrf_en-ja"]) / 2
    assert bleu.signature.count("tok:13a") == bleu.signature.count("tok:char") == 1
