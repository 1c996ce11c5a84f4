import json
import sys

import ctranslate2
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings

import export.__main__ as export_command
from command_line.errors import UserError
from export.bundle.run_loading import load_run, read_run
from export.ctranslate2.model_directory import write_ctranslate2
from export.model.search import SearchSettings
from tests.helpers.example_sentences import NASTY, SENTENCES
from tests.helpers.oracles.numpy_oracles import pad, target_log_probabilities
from tests.helpers.oracles.whole_characters import PARTS, ids_of, text_of
from tests.helpers.other_systems.converted_runs import (
    CustomOutputModel,
    write_converted_run,
)
from tests.helpers.other_systems.ctranslate2_models import MODELS, make_model
from tests.helpers.signature_requests import ask, nbest_inputs
from translate import __main__ as translate, evaluate
from translate.loading import load_export
from translate.runtime.ctranslate2 import CTranslate2Runtime

SETTINGS = SearchSettings(beam_size=3, max_extra_length=8)
TEXT = [*[sentence.encode() for sentence in SENTENCES], *NASTY]
TEXT += [b"a truncated \xf0\x9f\x98 cat", b"a\x00b", b" two  blanks "]


def write(run_dir, folder, model=None, settings=SETTINGS, precision="float32"):
    """Writes version 1 of the run's model, or another with its tokenizer."""
    trained, proto = read_run(run_dir)
    return write_ctranslate2(model or trained, proto, settings, precision, folder, 1)


def check_same(outputs, expected):
    """Compares with the SavedModel; only of what was cut the scores, too."""
    for name in ("translation", "truncated"):
        np.testing.assert_array_equal(outputs[name], expected[name])
    cut = outputs["truncated"]
    np.testing.assert_allclose(outputs["score"][cut], expected["score"][cut], atol=1e-4)
    assert len(set(outputs["translation"])) > 3


def random_ids(random, lengths):
    return [[int(i) for i in random.integers(4, 330, n)] for n in lengths]


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS)
def test_forced_log_probabilities_are_those_of_the_model(run_dir, tmp_path, changes):
    model = make_model(**changes)
    folder = write(run_dir, tmp_path, model)
    translator = CTranslate2Runtime(folder)
    random = np.random.default_rng(2)
    sources = random_ids(random, [1, 7, 12, 39])
    targets = random_ids(random, [5, 1, 0, 38])
    pieces = translator._tokenizer.id_to_piece

    scored = ctranslate2.Translator(str(folder)).score_batch(
        [[*pieces(ids), "</s>"] for ids in sources], [pieces(ids) for ids in targets]
    )

    config = json.loads((folder / "config.json").read_text())
    epsilon = model.architecture.norm_epsilon
    assert config["layer_norm_epsilon"] == epsilon  # Seen in small states only.
    sides = (pad([[*ids, 1] for ids in side]) for side in (sources, targets))
    expected = target_log_probabilities(model, *sides)
    assert expected.min() < -6  # Far from certain.
    for result, row in zip(scored, expected, strict=True):
        found = result.log_probs
        np.testing.assert_allclose(found, row[row != 0], atol=1e-4)


def test_a_converted_run_is_searched_as_the_savedmodel_is(tmp_path):
    """It has two vocabularies and tokenizers."""
    converted = tmp_path / "run"
    changes = {"decoder_mixer": "attention", "tied_output": True}
    write_converted_run(converted, **changes)
    options = ["--format=ctranslate2", "--beam-size=3", "--max-extra-length=8"]
    export_command.main(
        [f"--run-dir={converted}", f"--export-dir={tmp_path}", *options]
    )

    translator = load_export(tmp_path)
    outputs = translator.translate_batch(SENTENCES)

    settings = SearchSettings(3, 0.9, 8, penalty_offset=0)
    expected = load_run(converted, settings).translate(tf.constant(SENTENCES))
    check_same(outputs, expected)
    assert outputs["truncated"].any()


@pytest.fixture(scope="module")
def runtime(run_dir, tmp_path_factory):
    return CTranslate2Runtime(write(run_dir, tmp_path_factory.mktemp("ctranslate2")))


@settings(deadline=None)
@given(parts=PARTS)
def test_bytes_that_are_no_whole_character_are_left_out(runtime, parts):
    library = runtime._target_tokenizer
    pieces = library.id_to_piece(ids_of(library, parts))

    found = runtime._detokenize([*pieces, "</s>"])

    assert found.decode() == text_of(library, parts)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: CustomOutputModel(330, make_model().architecture, 40),
            "compute_logits of CustomOutputModel",
        ),
        (lambda: make_model(decoder_mixer="ssru"), "CTranslate2 lacks. .* ssru"),
        (lambda: make_model(activation="tanh"), "lacks. .*: tanh, none of relu, "),
    ],
)
def test_refuses_models_that_it_lacks(run_dir, tmp_path, make, message):
    with pytest.raises(UserError, match=message):
        write(run_dir, tmp_path / "export", make())
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize(("beam_size", "penalty"), [(1, 0.6), (3, 0.0), (3, 0.6)])
def test_search_equals_the_savedmodel(run_dir, tmp_path, servable, beam_size, penalty):
    """Beams need not agree, but do where none is refilled to the good.

    Of the third sentence, CTranslate2 finds another beam than the SavedModel.
    """
    sentences = [*SENTENCES[:2], *SENTENCES[3:]]
    text = TEXT if beam_size == 1 else [text.encode() for text in sentences]
    write(run_dir, tmp_path, settings=SearchSettings(beam_size, penalty, 8))

    outputs = load_export(tmp_path).ask("serving_default", ask(text))

    inputs = nbest_inputs(text, beam_size, penalty, 8)
    expected = servable.predict("translate_nbest", inputs)
    expected = {name: value[:, 0] for name, value in expected.items() if value.ndim > 1}
    check_same(outputs, expected)
    np.testing.assert_allclose(outputs["score"], expected["score"], atol=1e-4)


def test_hypotheses_cut_at_the_limit_crowd_none_out(run_dir, tmp_path):
    """At the limit `K` cut ones are likelier than the end that beats them."""
    model = make_model()
    last = model.decoder.layers[-1].feed_forward_residual.normalization
    direction = np.eye(16)[3]
    last.gamma.assign(np.zeros(16))
    last.beta.assign(direction)  # The same state, whatever comes before.
    logits = np.full(330, -20.0)
    logits[[1, 50, 60]] = np.log([0.05, 0.8, 0.15])
    model.embedding.embeddings.assign(logits[:, None] * direction)
    folder = write(run_dir, tmp_path, model, SearchSettings(3, 0.0, 1))
    translator = CTranslate2Runtime(folder)
    sources, _ = translator._tokenize([b"a"])

    (best,) = translator._translate(sources)

    assert len(sources[0]) == 2  # So the limit is 3: 50 50 50, 50 50 60, …
    assert 0.8 * 0.8 * 0.15 > 0.05 > 0.8 * 0.8 * 0.05
    assert best.pieces == ["</s>"]
    assert best.score == pytest.approx(np.log(0.05), abs=1e-4)


def test_batch_mates_change_nothing(run_dir, tmp_path):
    write(run_dir, tmp_path)
    translator = load_export(tmp_path)

    together = translator.translate_batch(TEXT)

    for row, text in enumerate(TEXT):
        alone = translator.translate_batch([text])
        assert alone["translation"][0] == together["translation"][row]
        assert alone["truncated"][0] == together["truncated"][row]
        np.testing.assert_allclose(alone["score"][0], together["score"][row], atol=1e-4)
    none = translator.translate_batch([])
    assert {value.shape for value in none.values()} == {(0,)}


def test_ids_beyond_the_tokenizer_are_never_chosen(run_dir, tmp_path):
    model = make_model(vocabulary_size=337)
    table = model.embedding.embeddings.numpy()
    table[330:] *= 100  # Training would never learn these.
    model.embedding.embeddings.assign(table)
    translator = CTranslate2Runtime(write(run_dir, tmp_path, model))

    best = translator._translate(translator._tokenize(TEXT)[0])

    pieces = {piece for hypothesis in best for piece in hypothesis.pieces}
    assert not pieces & {"<pad>", "<s>", *translator._settings["forbidden"]}


def test_int8_is_smaller_and_near(run_dir, tmp_path):
    folders = [
        write(run_dir, tmp_path / precision, precision=precision)
        for precision in ("float32", "int8")
    ]
    sizes = [(folder / "model.bin").stat().st_size for folder in folders]
    random = np.random.default_rng(3)
    source, target = random_ids(random, [10, 30])
    piece = CTranslate2Runtime(folders[0])._tokenizer.id_to_piece
    scores = [
        ctranslate2.Translator(str(folder))
        .score_batch([[*piece(source), "</s>"]], [piece(target)])[0]
        .log_probs
        for folder in folders
    ]

    assert sizes[1] < 0.6 * sizes[0]
    # Random weights are the worst to round: these agree to 0.87.
    assert 0.7 < np.corrcoef(scores)[0, 1] < 0.99999
    outputs = CTranslate2Runtime(folders[1]).translate_batch(SENTENCES)
    assert all(outputs["translation"])


def test_commands_write_and_read_it(run_dir, translate_file, tmp_path, capsys):
    arguments = [f"--run-dir={run_dir}", f"--export-dir={tmp_path / 'export'}"]
    int8 = ["--format=ctranslate2", "--precision=int8", "--beam-size=2"]
    there = [arguments[1], "--batch-tokens=40"]

    export_command.main([*arguments, *int8, "--max-extra-length=3"])
    text = translate_file("\n".join(SENTENCES).encode(), *there)
    capsys.readouterr()
    files = [f"--source={tmp_path / 'in'}", f"--reference={tmp_path / 'out'}"]
    evaluate.main([*there, *files, "--json"])

    assert json.loads(capsys.readouterr().out)["chrf"]["score"] == 100
    outputs = load_export(tmp_path / "export").translate_batch(SENTENCES)
    expected = [b" ".join(line.splitlines()) for line in outputs["translation"]]
    assert text.split(b"\n") == [*expected, b""]
    settings = json.loads((tmp_path / "export/1/search.json").read_text())
    assert (settings["beam_size"], settings["max_extra_length"]) == (2, 3)


def test_refuses_in_one_line(run_dir, tmp_path, refused, monkeypatch):
    ours = (export_command, f"--run-dir={run_dir}", "--format=ctranslate2")
    write(run_dir, tmp_path)

    line = refused(*ours, f"--export-dir={tmp_path}", "--version=1")
    assert "--version must be a number that is not taken" in line
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    line = refused(*ours, f"--export-dir={tmp_path / 'new'}")
    assert "the format ctranslate2 needs the extra `ctranslate2`: pip" in line
    assert not (tmp_path / "new").exists()
    line = refused(translate, "--export-dir", tmp_path)
    assert "the format ctranslate2 needs the extra `ctranslate2`: pip" in line


def test_refuses_a_damaged_one(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.bin").write_bytes(b"half")

    with pytest.raises(UserError, match=r"1 must be whole.*Received: File"):
        load_export(tmp_path)
