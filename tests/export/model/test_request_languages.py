"""Tests of the languages of requests: tags of random models, in every signature."""

import hypothesis
import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import strategies

from command_line.errors import UserError
from export.bundle.run_loading import load_run, read_languages
from export.model.search import SearchSettings
from export.model.signature_inputs import INPUTS, LANGUAGE_INPUTS
from litert_translator.translator import decode
from tests.helpers import signature_requests
from tests.helpers.example_sentences import NASTY, SENTENCES, WORDS
from tests.helpers.multilingual_runs import FORCED, OWN, TAGS, write_run
from tests.helpers.oracles.numpy_oracles import encode, target_log_probabilities
from tests.helpers.oracles.reference_searches import penalty
from tests.helpers.signature_requests import (
    REQUESTS,
    ask,
    assert_same,
    differences,
    strings,
    to_rows,
)
from text_processing.language_tags import LanguageTags

LANGUAGES = {"plain": None, "own": OWN, "forced": FORCED}
SETTINGS = SearchSettings(3, max_extra_length=8)
PHRASES = strategies.lists(strategies.sampled_from(WORDS), min_size=1, max_size=10).map(
    b" ".join
)
TEXTS = strategies.one_of(PHRASES, strategies.sampled_from(NASTY))
# Sentences of a document have the tag, but the document itself has not.
TEXT_SIGNATURES = [s for s in INPUTS if s != "translate_document"]
SOME = hypothesis.settings(
    max_examples=6, derandomize=True, deadline=None, database=None
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {kind: write_run(folder / kind, x) for kind, x in LANGUAGES.items()}


@pytest.fixture(scope="module")
def translators(runs):
    return {
        kind: load_run(run, SETTINGS, signatures=INPUTS) for kind, run in runs.items()
    }


@pytest.fixture(scope="module")
def greedy(runs):
    names = "serving_default", "score"
    return load_run(
        runs["forced"], SearchSettings(1, max_extra_length=8), "float32", names
    )


def run(translator, signature, inputs):
    outputs = translator.signatures[signature](
        **{name: tf.constant(value) for name, value in inputs.items()}
    )
    return {name: value.numpy() for name, value in outputs.items()}


def with_codes(translator, signature, inputs, pairs):
    """Returns inputs with those of a signature's languages."""
    names = [x.name for x in translator.signatures[signature].input_signature]
    codes = dict(zip(LANGUAGE_INPUTS, zip(*pairs, strict=True), strict=True))
    return {**inputs, **{n: strings(codes[n]) for n in codes if n in names}}


def draw_pairs(languages):
    sources = strategies.sampled_from([*languages.source_tags] or ["en"])
    return strategies.tuples(sources, strategies.sampled_from([*languages.target_tags]))


@pytest.mark.parametrize("signature", TEXT_SIGNATURES)
def test_a_code_does_what_its_tag_before_the_text_does(translators, signature):
    own, plain = translators["own"], translators["plain"]

    @SOME
    @hypothesis.given(
        rows=strategies.lists(strategies.tuples(PHRASES, draw_pairs(OWN)), min_size=1)
    )
    def check(rows):
        texts, pairs = zip(*rows, strict=True)
        inputs = REQUESTS[signature](texts)
        found = run(own, signature, with_codes(own, signature, inputs, pairs))
        name = "source" if "source" in inputs else "text"
        tagged = [f"<2{pair[1]}> ".encode() for pair in pairs]
        tagged = strings([a + b for a, b in zip(tagged, texts, strict=True)])
        expected = run(plain, signature, {**inputs, name: tagged})
        if "source_tokens" in found:
            expected = without_tag(expected)
        assert_same(found, expected)

    check()


def without_tag(outputs):
    """Removes the first source token from outputs of `align` and `explain`."""
    outputs["source_tokens"] = outputs["source_tokens"][:, 1:]
    for name in ("attention", "encoder_decoder_attention"):
        if name in outputs:
            outputs[name] = outputs[name][..., 1:]
    if "encoder_attention" in outputs:
        outputs["encoder_attention"] = outputs["encoder_attention"][..., 1:, 1:]
    if "alignment" in outputs:
        is_real = outputs["target_tokens"] != b""
        best = outputs["attention"].argmax(axis=2)
        outputs["alignment"] = np.where(is_real, best, -1)
    return outputs


@pytest.mark.parametrize("signature", INPUTS)
@pytest.mark.parametrize("kind", ["own", "forced"])
def test_a_batch_of_mixed_languages_answers_as_each_alone(
    translators, kind, signature, monkeypatch
):
    # The large weights make rounding large, too; another language changes far more.
    monkeypatch.setattr(signature_requests, "TOLERANCE", 1e-3)
    translator, known = translators[kind], {}

    def answer(rows):
        texts, pairs = zip(*rows, strict=True)
        inputs = with_codes(translator, signature, REQUESTS[signature](texts), pairs)
        return to_rows(run(translator, signature, inputs))

    @SOME
    @hypothesis.given(
        rows=strategies.lists(
            strategies.tuples(TEXTS, draw_pairs(LANGUAGES[kind])),
            min_size=2,
            max_size=6,
        )
    )
    def check(rows):
        for row in rows:
            if row not in known:
                (known[row],) = answer([row])
        for found, row in zip(answer(rows), rows, strict=True):
            assert not differences(found, known[row]), row

    check()


@pytest.mark.parametrize("kind", ["own", "forced"])
def test_what_is_fixed_is_no_input_and_answers_the_same(runs, translators, kind):
    names = "serving_default", "translate_document", "align"
    languages = read_languages([runs[kind]], "en", "fr")
    fixed = load_run(runs[kind], SETTINGS, "float32", names, languages)
    texts = [s.encode() for s in SENTENCES]

    for name in names:
        inputs = REQUESTS[name](texts)
        given = with_codes(translators[kind], name, inputs, [("en", "fr")] * len(texts))
        found, expected = run(fixed, name, inputs), run(translators[kind], name, given)
        assert_same(found, expected)
        assert given.keys() > inputs.keys()


def test_a_forced_tag_is_greedy_search_from_it(runs, greedy):
    """Its log-probability counts nothing and its length one, as in Hugging Face."""
    model = keras.saving.load_model(runs["forced"] / "model.keras", compile=False)
    path = str(runs["forced"] / "tokenizer.model")
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=path)
    before, tag = (tokenizer.piece_to_id(TAGS[code]) for code in ("de", "pt"))
    texts = [s.encode() for s in SENTENCES]
    pairs = [("de", "pt")] * len(texts)
    inputs = with_codes(greedy, "serving_default", ask(texts), pairs)
    outputs = run(greedy, "serving_default", inputs)
    scored = {"source": strings(texts), "target": outputs["translation"]}
    scored = run(greedy, "score", with_codes(greedy, "score", scored, pairs))

    for i, text in enumerate(texts):
        source = np.array([[before, *encode(tokenizer, [text])[0]]])
        ids = [tag]
        while ids[-1] != 1 and len(ids) < source.size + 8 - 1:
            targets = np.array([[3, *ids]])
            logits = model({"source_ids": source, "target_ids": targets})
            row = keras.ops.convert_to_numpy(logits)[0, -1]
            row[[0, 3]] = -np.inf
            ids.append(int(row.argmax()))
        if ids[-1] != 1:
            ids.append(1)
        found = target_log_probabilities(model, source, np.array([ids]))[0, 1:]
        assert outputs["translation"][i].decode() == decode(tokenizer, ids[1:-1])
        expected = found.sum() / penalty(len(ids))
        np.testing.assert_allclose(outputs["score"][i], expected, rtol=1e-5)
        row = to_rows(scored)[i]
        if tokenizer.encode(tokenizer.decode(ids[1:-1])) == ids[1:-1]:
            np.testing.assert_allclose(row["score"], expected, rtol=1e-5)
            count = len(found)
            np.testing.assert_allclose(
                row["token_log_probabilities"][:count], found, rtol=1e-4, atol=1e-5
            )


def test_beams_score_a_forced_tag_like_the_rest_of_its_prompt(runs, translators):
    forced, pairs = translators["forced"], [("en", "de")] * len(SENTENCES)
    texts = [s.encode() for s in SENTENCES]
    inputs = with_codes(forced, "translate_nbest", ask(texts), pairs)
    defaults = {"beam_size": 3, "length_penalty": 0.6, "max_extra_length": 8}
    types = {"length_penalty": np.float32}
    defaults = {k: types.get(k, np.int32)(v) for k, v in defaults.items()}
    several = run(forced, "translate_nbest", {**inputs, **defaults})
    best = run(forced, "serving_default", inputs)

    np.testing.assert_array_equal(several["translation"][:, 0], best["translation"])
    np.testing.assert_allclose(several["score"][:, 0], best["score"], atol=1e-5)
    documents = run(forced, "translate_document", inputs)
    np.testing.assert_array_equal(documents["translation"], best["translation"])


def test_a_prefix_follows_the_tag(translators):
    forced = translators["forced"]
    inputs = REQUESTS["translate_options"]([b"Two cats."] * 2)
    inputs["prefix"] = strings([b"The", b""])
    inputs["length_penalty"] = np.full(2, 0.6, np.float32)
    inputs["max_extra_length"] = np.full(2, 8, np.int32)
    pairs = [("en", "fr")] * 2
    found = run(
        forced,
        "translate_options",
        with_codes(forced, "translate_options", inputs, pairs),
    )
    plain = with_codes(forced, "serving_default", ask([b"Two cats."] * 2), pairs)

    assert found["error"].tolist() == [b"", b""]
    assert found["translation"][0].startswith(b"The")
    expected = run(forced, "serving_default", plain)["translation"][1]
    assert found["translation"][1] == expected


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([b"de", b"xx"], "must be one of the model: de, fr, pt. Received:"),
        ([b"de", b"ptt"], "must be one of the model: pt. Received:"),
        ([b"de", b""], "must be one of the model: de, fr, pt. Received:"),
        ([b"de"], "text, target_language must have as many rows each. Received:"),
    ],
)
def test_another_code_or_another_number_of_them_is_one_clear_line(
    translators, codes, message
):
    inputs = {**ask([b"A cat.", b"A dog."]), "target_language": strings(codes)}

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(translators["own"], "serving_default", inputs)


def test_a_long_text_is_cut_for_the_tag_too(translators):
    text = b" ".join([b"cat"] * 60)

    for kind in ("own", "forced"):
        pairs = [("en", "de")]
        inputs = {"source": strings([text]), "target": strings([text])}
        inputs = with_codes(translators[kind], "align", inputs, pairs)
        outputs = run(translators[kind], "align", inputs)
        counts = [(outputs[f"{x}_tokens"] != b"").sum() for x in ("source", "target")]
        assert outputs["truncated"][0]
        assert counts == [39, 39 if kind == "forced" else 40]


def test_an_export_of_one_pair_or_with_another_code_is_refused(runs):
    with pytest.raises(UserError, match="--target-language must be left out"):
        read_languages([runs["plain"]], "", "de")
    with pytest.raises(
        UserError, match="one of the model: de, fr, pt. Received: pt-br"
    ):
        read_languages([runs["own"]], "", "pt-br")
    with pytest.raises(UserError, match="runs with the same languages"):
        read_languages([runs["own"], runs["forced"]])
    alien = LanguageTags({}, {"de": "▁<2de>", "xx": "▁<2xx>"})
    with pytest.raises(UserError, match="subwords of its vocabulary. Received: ▁<2xx>"):
        load_run(runs["own"], SETTINGS, languages=alien)
