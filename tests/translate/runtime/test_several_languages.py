"""Tests of models of several languages: runtimes of all formats, and commands."""

import json

import pytest

from command_line.errors import UserError
from export import __main__ as export, browser_page, check
from litert_translator.languages import find_tags
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.fake_servable import Servable
from tests.helpers.multilingual_runs import FORCED, OWN, write_run
from translate import evaluate, explain
from translate.loading import LanguageOptions, choose_languages, load_export
from translate.runtime.tf_serving import TFServingRuntime, make_sender

KINDS = {"own": OWN, "forced": FORCED}
PAIRS = [("en", "de"), ("fr", "pt"), ("en", "fr")]


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Folders of exports by kind and format; `fixed` are from English to German."""
    pytest.importorskip("ai_edge_litert")
    folder, found = tmp_path_factory.mktemp("exports"), {}
    fixed = ["--source-language=en", "--target-language=de"]
    for kind, languages in KINDS.items():
        run_dir = write_run(folder / f"run_{kind}", languages)
        for format, options in (
            ("saved_model", ["--signatures=all"]),
            ("litert", ["--format=litert"]),
            ("ctranslate2", ["--format=ctranslate2"]),
            ("fixed", ["--format=litert", *fixed]),
        ):
            if format == "ctranslate2":
                pytest.importorskip("ctranslate2")
            found[kind, format] = path = folder / kind / format
            options = [*options, "--beam-size=3", "--max-extra-length=8"]
            export.main([f"--run-dir={run_dir}", f"--export-dir={path}", *options])
    return found


@pytest.mark.slow
def test_an_export_says_which_languages_a_request_names(tmp_path, capsys):
    run_dir = write_run(tmp_path / "run", FORCED)
    options = [f"--run-dir={run_dir}", "--format=litert"]

    export.main([*options, f"--export-dir={tmp_path / 'both'}"])
    export.main([*options, f"--export-dir={tmp_path / 'one'}", "--target-language=de"])

    first, second = (x for x in capsys.readouterr().out.splitlines() if "-m tra" in x)
    assert first.endswith("both --source-language CODE --target-language CODE")
    assert second.endswith("one --source-language CODE")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_formats_translate_alike(exports, kind):
    saved = load_export(exports[kind, "saved_model"])
    litert = load_export(exports[kind, "litert"])
    greedy = load_export(exports[kind, "ctranslate2"])
    fixed = load_export(exports[kind, "fixed"])
    seen = set()
    for codes in PAIRS:
        expected = saved.for_languages(*codes)
        found = litert.for_languages(*codes)
        texts = [text.encode() for text in [*SENTENCES, ""]]
        outputs, others = (x.translate_batch(texts) for x in (expected, found))
        assert others["translation"].tolist() == outputs["translation"].tolist()
        assert others["score"] == pytest.approx(outputs["score"], abs=1e-4)
        seen.add(tuple(outputs["translation"]))
        pairs = list(zip(SENTENCES, SENTENCES[::-1], strict=True))
        assert found.find_alternatives(SENTENCES, 2) == expected.find_alternatives(
            SENTENCES, 2
        )
        words = [x.find_words(pairs) for x in (expected, found)]
        assert [[w["source"] for w in each] for each in words[:1]] == [
            [w["source"] for w in each] for each in words[1:]
        ]
        third = greedy.for_languages(*codes).translate_batch(texts)
        # Its search has rules of its own, and is not worse.
        assert (third["score"] > outputs["score"] - 1e-3).mean() > 0.6
        assert third["translation"][-1] == b""
        if codes == ("en", "de"):
            assert fixed.translate(SENTENCES) == expected.translate(SENTENCES)
    assert len(seen) == len(PAIRS)
    assert saved.for_languages("en", "de").original is saved
    assert saved.for_languages("fr", "de").language == "fr"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_server_says_which_languages_its_requests_name(exports, kind):
    servable = Servable(exports[kind, "saved_model"])
    saved = load_export(exports[kind, "saved_model"]).for_languages("en", "pt")

    with serve_grpc(servable) as address:
        send = make_sender(address, servable.name, 20.0)
        remote = TFServingRuntime(send, 4, ())
        remote.find_language_inputs()
        view = remote.for_languages("en", "pt")
        view.probe()
        assert view.translate(SENTENCES) == saved.translate(SENTENCES)
        assert view.features == saved.features
        with pytest.raises(UserError, match="must be one of the model: pt"):
            remote.for_languages("en", "ptx").probe()


@pytest.mark.slow
def test_a_language_that_the_model_lacks_is_refused(exports):
    for format in ("saved_model", "litert", "ctranslate2"):
        runtime = load_export(exports["forced", format])
        with pytest.raises(UserError, match="the model: de, en, fr, pt. Received: fra"):
            runtime.for_languages("en", "fra")
        with pytest.raises(UserError, match="one of the model: .*Received: no --"):
            runtime.for_languages("en", "")
    with pytest.raises(UserError, match="one of the model: de. Received: fr"):
        load_export(exports["own", "fixed"]).for_languages("en", "fr")
    with pytest.raises(UserError, match="must get a target_language"):
        load_export(exports["own", "saved_model"]).translate(["a"])


@pytest.mark.slow
@pytest.mark.parametrize("format", ["saved_model", "litert", "fixed"])
def test_the_check_runs_samples_with_their_languages(exports, capsys, format):
    check.main([f"--export-dir={exports['forced', format]}"])

    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert not [line for line in lines if line.startswith("WRONG")]


@pytest.mark.slow
def test_commands_take_languages(exports, tmp_path, translate_file, refused, capsys):
    path = exports["own", "saved_model"]
    text = tmp_path / "text"
    text.write_text("\n".join(SENTENCES))
    there = [f"--export-dir={path}", "--source-language=en"]
    runtime = load_export(path).for_languages("en", "de")
    expected = [each.text for each in runtime.translate(SENTENCES)]

    found = translate_file(text.read_bytes(), *there, "--target-language=de")
    assert found.decode().splitlines() == expected
    files = [f"--source={text}", f"--reference={text}", "--json"]
    evaluate.main([*there, *files, "--target-language=de"])
    assert json.loads(capsys.readouterr().out)["bleu"]["score"] >= 0
    page = tmp_path / "page.html"
    explain.main([*there, "--target-language=de", "--text=A cat.", f"--output={page}"])
    assert "2de" not in page.read_text()
    line = refused(evaluate, *there, *files)
    assert line.endswith(
        "the target language must be one of the model: de, fr, pt. "
        "Received: no --target-language"
    )


def test_a_page_needs_an_export_of_two_languages(tmp_path, refused):
    from export.litert.model_directory import describe_languages
    from keras_transformer import SubwordTokenizer

    run_dir = write_run(tmp_path / "run", FORCED)
    tokenizer = SubwordTokenizer.from_pretrained(run_dir)
    config = {
        "tokenizer": "a",
        "target_tokenizer": "a",
        "languages": describe_languages(FORCED, tokenizer),
    }
    (tmp_path / "config.json").write_text(json.dumps(config))

    with pytest.raises(UserError, match="with --source-language, one of: de, en, fr"):
        browser_page.write_page(tmp_path, tmp_path, tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_the_runner_names_the_languages_that_it_has():
    tags = {"source_tags": {}, "target_tags": {"de": 5, "fr": 6}, "is_forced": False}

    assert find_tags(tags, ("", "fr")) == ([6], [])
    assert find_tags({**tags, "is_forced": True}, ("", "de")) == ([], [5])
    with pytest.raises(ValueError, match="one of de, fr. Received: target_language='x"):
        find_tags(tags, ("", "xx"))


def test_a_model_of_one_pair_takes_no_target_language():
    with pytest.raises(UserError, match="must be left out for a model of one pair"):
        choose_languages(FunctionRuntime(None), LanguageOptions(target_language="de"))
    english = LanguageOptions(source_language="en")
    assert choose_languages(FunctionRuntime(None), english).language == "en"
