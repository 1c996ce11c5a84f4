import dataclasses
import functools
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given

import export.__main__ as export_command
import litert_translator
from command_line.errors import UserError
from export import check
from export.bundle.run_loading import load_run, read_run
from export.litert.model_directory import write_litert
from export.model.search import SearchSettings
from litert_translator.graphs import TURN, Model
from litert_translator.search import search
from litert_translator.translator import decode
from tests.helpers.example_sentences import NASTY, SENTENCES, make_string
from tests.helpers.oracles.numpy_oracles import pad, target_log_probabilities
from tests.helpers.oracles.reference_searches import penalty
from tests.helpers.oracles.whole_characters import PARTS, ids_of, text_of
from tests.helpers.other_systems.ctranslate2_models import MODELS, make_model
from tests.helpers.signature_requests import REQUESTS, assert_same, options_inputs
from translate import evaluate
from translate.loading import load_export
from translate.runtime.litert import LiteRTRuntime

SETTINGS = SearchSettings(3, max_extra_length=8, source_language="en")
MODELS = {**MODELS, "recurrent": {"decoder_mixer": "ssru"}}
TEXT = [*[sentence.encode() for sentence in SENTENCES], *NASTY]
TEXT += [b"a truncated \xf0\x9f\x98 cat", b"a\x00b", b" two  blanks "]


def write(run_dir, folder, model=None, settings=SETTINGS, precision="float32"):
    """Writes version 1 of the run's model, or another with its tokenizer."""
    trained, protos = read_run(run_dir)
    return write_litert(model or trained, protos, settings, precision, folder, 1)


@pytest.fixture(scope="module")
def folder(run_dir, tmp_path_factory):
    return write(run_dir, tmp_path_factory.mktemp("litert"))


@pytest.fixture(scope="module")
def translator(folder):
    return litert_translator.Translator(folder)


def encode(translator, text):
    """Returns the ids of a text without EOS; sources and targets share them."""
    return translator.encode_source(text)[0][:-1]


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_log_probabilities_and_attention_are_those_of_the_model(
    run_dir, tmp_path, changes
):
    model = make_model(**changes)
    translator = litert_translator.Translator(write(run_dir, tmp_path, model))
    sources = ["Two cats sleep.", "The", SENTENCES[2]]
    targets = ["sleep. cats Two", SENTENCES[5], ""]

    found = translator.align(sources, targets)

    ids = [
        pad([[*encode(translator, text), 1] for text in side])
        for side in (sources, targets)
    ]
    expected = target_log_probabilities(model, *ids)
    assert expected.min() < -6  # Far from certain.
    for alignment, row in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            alignment.log_probabilities, row[row != 0], atol=1e-4
        )
        count = len(alignment.log_probabilities)
        assert alignment.score == pytest.approx(row.sum() / penalty(count), abs=1e-4)
        np.testing.assert_allclose(
            alignment.attention.sum(axis=1), np.ones(count), atol=1e-5
        )


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("model", ["of the run", "recurrent"])
def test_neither_batch_nor_order_changes_an_answer(run_dir, tmp_path, model, precision):
    made = make_model(**MODELS[model]) if model in MODELS else None
    folder = write(run_dir, tmp_path, made, precision=precision)
    translator = litert_translator.Translator(folder, num_threads=1)
    random = np.random.default_rng(2017)
    texts = [make_string(random) for _ in range(64)]
    texts = [text.decode("utf-8", "replace") for text in texts]

    alone = [translator.translate_nbest([text], 3)[0] for text in texts]
    together = translator.translate_nbest(texts, 3)
    order = random.permutation(64)
    mixed = translator.translate_nbest([texts[i] for i in order], 3)

    assert len({len(translator.encode_source(text)[0]) for text in texts}) > 20
    for found, places in ((together, range(64)), (mixed, order)):
        for row, place in zip(found, places, strict=True):
            assert [each.text for each in row] == [each.text for each in alone[place]]
            scores, expected = ([e.score for e in each] for each in (row, alone[place]))
            np.testing.assert_allclose(scores, expected, atol=1e-4)


@pytest.mark.parametrize(
    "signature", ["serving_default", "translate_nbest", "align", "score"]
)
def test_signatures_answer_as_those_of_the_savedmodel(folder, servable, signature):
    inputs = REQUESTS[signature](TEXT)

    found = LiteRTRuntime(folder).ask(signature, inputs)

    expected = servable.predict(signature, inputs)
    assert set(found) <= set(expected)
    assert_same(found, expected, atol=1e-4)


def test_options_of_the_search_are_those_of_the_savedmodel(
    run_dir, translator, servable
):
    texts = [sentence.encode() for sentence in SENTENCES]
    prefixes = [b"", b"The", b"Two cats", b"", b"a b", b"\xe2\x82\xac"]
    text = [prefix.decode() for prefix in prefixes]

    settings = dataclasses.replace(SETTINGS, no_repeat_ngram=2, min_length=9)
    ruled = load_run(run_dir, settings, signatures=("serving_default",))

    pairs = [
        (
            translator.translate_nbest(
                SENTENCES, 1, text, length_penalty=1.5, max_extra_length=2
            ),
            servable.predict(
                "translate_options", options_inputs(texts, 1.5, 2, prefixes)
            ),
        ),
        (
            translator.translate_nbest(SENTENCES, 1, no_repeat_ngram=2, min_length=9),
            ruled.signatures["serving_default"](tf.constant(texts)),
        ),
    ]

    for found, expected in pairs:
        columns = (
            np.asarray(expected[n]) for n in ("translation", "score", "truncated")
        )
        for (best,), text, score, cut in zip(found, *columns, strict=True):
            assert best.text == text.decode()
            assert best.score == pytest.approx(float(score), abs=1e-4)
            assert best.truncated == cut


@pytest.fixture(scope="module")
def library(run_dir):
    (proto, _) = read_run(run_dir)[1]
    return sentencepiece.SentencePieceProcessor(model_proto=proto)


@given(PARTS)
def test_bytes_that_are_no_whole_character_are_left_out(library, parts):
    assert decode(library, ids_of(library, parts)) == text_of(library, parts)


class ModelThatEnds:
    """Its best token is always EOS, and the next best one is 4."""

    def __init__(self):
        self.settings = {
            **{"eos_id": 1, "bos_id": 3, "forbidden_ids": [0, 3]},
            **{"max_target_length": 9, "num_candidates": 1},
        }

    def start(self, sources, beams):
        pass

    step = reorder = lambda self, rows: None

    def output(self, name):
        best = {"candidates": [[1]], "log_probabilities": np.log([[0.6]])}
        return np.array(best[name])

    def log_probabilities(self):
        return np.log(np.float32([[[0.01, 0.6, 0.01, 0.01, 0.36, 0.01]]]))


def test_an_end_at_the_limit_that_min_length_delays_cuts_nothing():
    options = {
        **{"beam_size": 1, "max_extra_length": 0, "min_length": 5},
        **{"no_repeat_ngram": 0, "length_penalty": 0, "penalty_offset": 5},
        "unscored_prefix": 0,
    }

    ((found,),) = search(ModelThatEnds(), [[4, 5, 1]], [[]], 1, options)

    assert found.ids == [4, 4, 1]
    assert not found.truncated


def test_more_beams_than_the_export_has_find_what_its_beams_find(
    run_dir, tmp_path, translator
):
    wide = litert_translator.Translator(
        write(run_dir, tmp_path, settings=SearchSettings(7, max_extra_length=8))
    )

    found, expected = (
        each.translate_nbest(SENTENCES, 7, beam_size=7) for each in (translator, wide)
    )

    for row, other in zip(found, expected, strict=True):
        assert [each.text for each in row] == [each.text for each in other]
        np.testing.assert_allclose(
            [each.score for each in row], [each.score for each in other], atol=1e-4
        )


def test_samples_follow_the_probabilities(run_dir, translator):
    """Of two tokens, the second is EOS; so the first decides the text."""
    model, _ = read_run(run_dir)
    source = encode(translator, SENTENCES[1])
    limit = {"max_extra_length": 1 - len(source)}
    ids = {"source_ids": [[*source, 1]], "target_ids": [[3]]}
    logits = model({name: np.array(value) for name, value in ids.items()})
    logits = np.array(logits, np.float64)[0, 0] / 2
    logits[[0, 3]] = -np.inf
    best = np.argsort(-logits)[:5]
    p = np.exp(logits[best] - logits.max())
    p = p / p.sum()
    count = np.searchsorted(np.cumsum(p), 0.9) + 1

    draws = translator.sample(
        SENTENCES[1:2] * 400, range(400), 2.0, top_k=5, top_p=0.9, **limit
    )

    expected = dict.fromkeys((each.text for each in draws), 0.0)
    for token, share in zip(best[:count], p[:count] / p[:count].sum(), strict=True):
        # Decoding leaves out control tokens, a leading space and half characters.
        text = translator._target.decode([int(token)]).replace("\ufffd", "")
        expected[text] = expected.get(text, 0) + share
    assert 1 < len(expected) <= count
    for text, share in expected.items():
        found = np.mean([each.text == text for each in draws])
        assert found == pytest.approx(share, abs=4 * (0.25 / 400) ** 0.5)
    again = translator.sample(SENTENCES[1:2], [3], 2.0, 5, 0.9, **limit)
    assert again == draws[3:4]


def test_sizes_are_known_before_a_step(folder, translator):
    """Otherwise LiteRT would prepare operations in each step."""
    model = Model(folder, translator.settings)

    with TURN:
        model.start([[20, 30, 1], [40, 1]], 2)

    assert model.output("candidates").shape == (2 * 2, 2 * 3)


def test_int8_is_smaller_and_near_and_batch_mates_change_nothing(
    run_dir, tmp_path, translator
):
    folder = write(run_dir, tmp_path, precision="int8")
    int8 = litert_translator.Translator(folder, num_threads=2)
    reverse = [" ".join(text.split()[::-1]) for text in SENTENCES]
    texts = [text.decode("utf-8", "replace") for text in TEXT]

    rows = [each.align(SENTENCES, reverse) for each in (translator, int8)]
    scores = [np.concatenate([each.log_probabilities for each in row]) for row in rows]
    together = int8.translate(texts)
    model = Model(folder, int8.settings)
    logits = []
    with TURN:
        model.start([[20, 30, 1]], 2)
        for second in (40, 50):
            model.step(np.array([[30, second]]))
            logits.append(model.output("logits"))

    # Random weights are the worst to round.
    assert 0.7 < np.corrcoef(scores)[0, 1] < 0.99999
    assert together == [int8.translate([text])[0] for text in texts]
    np.testing.assert_array_equal(logits[0][0], logits[1][0])
    assert np.abs(logits[0][1] - logits[1][1]).max() > 0.1
    assert all(each.text for each in together[: len(SENTENCES)])
    # The table of the embedding is the matrix of the output layer, too.
    trained, _ = read_run(run_dir)
    table = np.array(trained.embedding.embeddings)
    scales = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
    integers = np.round(table / scales).astype("int8")
    assert (folder / "step.tflite").read_bytes().count(integers) == 1
    whole = (tmp_path / "float32", "float32")
    step = write(run_dir, *whole[:1]) / "step.tflite"
    assert step.read_bytes().count(table) == 1


def test_commands_write_read_and_check_it(run_dir, translate_file, tmp_path, capsys):
    there = f"--export-dir={tmp_path / 'export'}"
    (tmp_path / "in").write_text("\n".join(SENTENCES) + "\n")
    content = (tmp_path / "in").read_bytes()

    export_command.main(
        [there, f"--run-dir={run_dir}", "--format=litert", "--beam-size=2"]
        + ["--max-extra-length=3"]
    )
    html = translate_file(b"<p>Two <b>cats</b> sleep.</p>", there, "--format=html")
    written = translate_file(content, there)
    capsys.readouterr()
    evaluate.main(
        [there, f"--source={tmp_path / 'in'}", "--json"]
        + [f"--reference={tmp_path / 'out'}"]
    )
    assert json.loads(capsys.readouterr().out)["chrf"]["score"] == 100
    check.main([there])

    said = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in said} == {"ok"}
    samples = json.loads((tmp_path / "export/1/samples.json").read_text())
    model = load_export(tmp_path / "export")
    for sample in samples:
        (found,) = model.translate([sample["source"]])
        assert found.text == " ".join(sample["translation"].splitlines())
    outputs = model.translate_batch(SENTENCES)
    texts = [text.decode() for text in outputs["translation"]]
    lines = [" ".join(text.splitlines()) for text in texts]
    assert written.decode().splitlines() == lines
    assert html.count(b"<b>") == html.count(b"</b>") == 1


def test_the_service_answers_as_with_the_savedmodel(folder, export_dir):
    litert, saved = map(load_export, (folder.parent, export_dir))

    assert set(saved.features) == set(litert.features)
    assert litert.translate(SENTENCES) == saved.translate(SENTENCES)
    found, expected = (
        model.find_alternatives(SENTENCES, 2) for model in (litert, saved)
    )
    assert found == expected
    pairs = [*itertools.pairwise(SENTENCES)]
    for row, other in zip(
        litert.find_words(pairs), saved.find_words(pairs), strict=True
    ):
        for word, same in zip(row["target"], other["target"], strict=True):
            assert word["text"] == same["text"]
            assert word["weights"] == pytest.approx(same["weights"], abs=2e-3)


@pytest.mark.slow
def test_an_empty_environment_translates(folder, translator, tmp_path):
    shutil.copytree("litert_translator", tmp_path / "litert_translator")
    python = tmp_path / "venv" / "bin" / "python"
    code = """
import json, sys
from litert_translator import Translator
found = Translator(sys.argv[1]).translate(json.loads(sys.argv[2]))
names = {name.partition(".")[0] for name in sys.modules}
print(json.dumps([found, sorted(names & {"tensorflow", "keras", "export"})]))
"""
    subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    install = ("-m", "pip", "install", "--quiet", "./litert_translator")
    subprocess.run([python, *install], cwd=tmp_path, check=True)

    said = subprocess.run(
        [python, "-c", code, folder, json.dumps(SENTENCES)],
        cwd=tmp_path / "venv",
        check=True,
        capture_output=True,
    ).stdout

    found, unwanted = json.loads(said)
    assert unwanted == []
    assert [tuple(each) for each in found] == translator.translate(SENTENCES)


def test_damage_is_found(folder, tmp_path, capsys):
    version = tmp_path / "1"
    version.mkdir()
    for path in folder.iterdir():
        (version / path.name).write_bytes(path.read_bytes())
    samples = json.loads((version / "samples.json").read_text())
    samples[0]["translation"] = "another"
    (version / "samples.json").write_text(json.dumps(samples))

    with pytest.raises(SystemExit):
        check.main([f"--export-dir={tmp_path}"])
    said = capsys.readouterr().out
    assert "WRONG files        samples.json: wanted" in said
    assert "-     samples      left out: a version that has changed" in said
    config = json.loads((version / "config.json").read_text())
    config["files"] = check.file_layout.list_files(version)
    (version / "config.json").write_text(json.dumps(config))
    with pytest.raises(SystemExit):
        check.main([f"--export-dir={tmp_path}"])
    assert "samples      wanted another" in capsys.readouterr().out
    (version / "step.tflite").write_bytes(b"half")
    with pytest.raises(UserError, match=r"1 must be whole; .*ValueError"):
        load_export(tmp_path)


def test_says_what_to_install(run_dir, tmp_path, refused, monkeypatch):
    ours = (export_command, f"--run-dir={run_dir}", "--format=litert")
    new = f"--export-dir={tmp_path / 'new'}"
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    for name in [*sys.modules]:
        if name.startswith("litert_translator"):
            monkeypatch.delitem(sys.modules, name)
    line = refused(*ours, new)
    assert "the format litert needs the extra `litert`: pip" in line
    assert not (tmp_path / "new").exists()


def test_the_block_of_the_guide_runs(folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports/litert").symlink_to(folder.parent)
    guide = pathlib.Path("docs/tutorials/device.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(import litert.*?)```", guide, re.S)
    monkeypatch.chdir(tmp_path)

    exec(block, {})

    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_folder_without_its_tokenizer_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "1")
    for name in ("tokenizer.model", "config.json"):
        (tmp_path / "1" / name).unlink()
        with pytest.raises(FileNotFoundError, match=f"1/{name}"):
            litert_translator.Translator(tmp_path / "1")


def test_options_out_of_range_are_refused(translator):
    with pytest.raises(ValueError, match=r"Received: 4"):
        translator.translate_nbest(SENTENCES, 4)
    with pytest.raises(ValueError, match=r"beam_size, .* Received: beams"):
        translator.translate(SENTENCES, beams=4)
    nan = float("nan")
    for method, option, values in (
        (translator.translate, "length_penalty", (nan, float("inf"), "1")),
        (translator.translate, "penalty_offset", (-1, nan)),
        (translator.translate, "no_repeat_ngram", (-1, 1.5)),
        (translator.translate, "beam_size", (0, 2.5, nan)),
        (translator.translate, "max_extra_length", (0.5, nan)),
        (translator.translate, "min_length", (-1, None)),
        (functools.partial(translator.sample, seeds=[0]), "temperature", (0, nan)),
        (functools.partial(translator.sample, seeds=[0]), "top_k", (-1, 0.5)),
        (functools.partial(translator.sample, seeds=[0]), "top_p", (0, 1.5, nan)),
    ):
        for value in values:
            wanted = f"`{option}` .*{option}={re.escape(repr(value))}"
            with pytest.raises(ValueError, match=wanted):
                method(SENTENCES[:1], **{option: value})
    with pytest.raises(ValueError, match="`texts` must be a list. Received: 'abc'"):
        translator.translate("abc")
    for call in (
        lambda: translator.translate_nbest(SENTENCES[:2], 1, ["a"]),
        lambda: translator.sample(SENTENCES[:2], [1]),
        lambda: translator.align(SENTENCES[:2], ["a"]),
    ):
        with pytest.raises(ValueError, match="same length. Received: 2 and 1"):
            call()
