"""Tests with the requests that clients of LibreTranslate send.

libretranslatepy sends its own. The others have the form that Mastodon's
`TranslationService::LibreTranslate` and discourse-translator's
`Provider::LibreTranslate` give them.
"""

import urllib.parse

import pytest
from libretranslatepy import LibreTranslateAPI

from serve.routes import TAG
from tests.helpers import service_client
from tests.helpers.fake_models import FunctionRuntime
from tests.helpers.service_client import ReversingModel

ENGLISH = "The two black cats are sleeping in the garden of my house."
SPANISH = "Los dos gatos negros duermen en el patio de mi casa."
FORM = "application/x-www-form-urlencoded"


def make_model():
    return FunctionRuntime(ReversingModel(), signatures=("serving_default", "align"))


@pytest.fixture(scope="module")
def service():
    pairs = ("en", "es"), ("es", "en"), ("zh-Hans", "en"), ("en", "pt-BR")
    with service_client.serve({pair: make_model() for pair in pairs}) as service:
        yield service


def translated(answer):
    assert answer.status == 200, answer.data
    return answer.json()["translatedText"]


def test_libretranslatepy(service):
    client = LibreTranslateAPI(service.url, api_key="none")

    assert client.translate("ab\ncd", "en", "es") == "ba\ndc"
    assert client.detect(ENGLISH)[0]["language"] == "en"
    assert [each["code"] for each in client.languages()] == [
        *("en", "es", "pt-BR", "zh-Hans")
    ]


@pytest.mark.parametrize("source", ["en", "auto"])
def test_mastodon(service, source):
    fields = {"source": source, "target": "es", "format": "html", "api_key": None}
    texts = [f"<p>{ENGLISH}</p>", "<p>ok</p>"]
    answer = service.post("/translate", q=texts, **fields)
    languages = service.get("/languages", **{"Content-Type": "application/json"})

    assert translated(answer) == [f"<p>{ENGLISH[::-1]}</p>", "<p>ko</p>"]
    if source == "auto":
        detected = answer.json()["detectedLanguage"]
        assert [each["language"] for each in detected] == ["en", "en"]
    targets = {each["code"]: each["targets"] for each in languages.json()}
    assert targets == {
        **{"en": ["es", "pt-BR"], "es": ["en"], "pt-BR": []},
        "zh-Hans": ["en"],
    }


def test_discourse(service):
    """It detects, looks whether both codes are served, then translates."""
    detected = service.post_form("/detect", q=SPANISH, api_key="")
    codes = [each["code"] for each in service.get("/languages").json()]
    language = detected.json()[0]["language"]
    answer = service.post_form(
        "/translate",
        **{"q": f"<p>{SPANISH}</p>", "source": language, "target": "en"},
        **{"format": "html", "api_key": ""},
    )

    assert language == "es"
    assert {"es", "en"} <= {*codes}
    assert translated(answer) == f"<p>{SPANISH[::-1]}</p>"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        *(("EN", "ES"), ("En", "pt-br"), ("en", "pb"), ("en", "pt_BR")),
        *(("zh", "en"), ("zh-hans", "EN"), ("zh-CN", "en")),
    ],
)
def test_codes_have_any_case_and_aliases(service, source, target):
    answer = service.post("/translate", q="ab", source=source, target=target)

    assert translated(answer) == "ba"


@pytest.mark.parametrize("kind", [FORM, None])
def test_fields_come_in_the_query_too(service, kind):
    fields = {"q": "ab + c&d", "source": "en", "target": "es"}
    path = f"/translate?{urllib.parse.urlencode(fields)}"
    headers = {"Content-Type": kind} if kind else {}

    assert translated(service._ask("POST", path, b"", headers)) == "d&c + ba"
    half = f"/translate?{urllib.parse.urlencode({'source': 'en', 'q': 'ab'})}"
    assert translated(service.post_form(half, target="es", q="no")) == "ba"


@pytest.mark.parametrize("count", [-3, 0, "2", 99, 1e9, "-1"])
def test_alternatives_are_clamped(service, count):
    answer = service.post(
        "/translate", q="ab", source="en", target="es", alternatives=count
    )

    assert translated(answer) == "ba"
    assert ("alternatives" in answer.json()) == (float(count) > 0)


def test_suggestions_are_refused(service):
    answer = service.post("/suggest", q="a", s="b", source="en", target="es")

    assert answer.status == 403
    assert answer.json() == {"error": "Suggestions are disabled on this server."}


TIMES = "1\n00:00:01,000 --> 00:00:02,500\n"


@pytest.mark.parametrize("text", ["<" * 10**6, "<i>" * 10**5, "‹>" * 10**5])
@pytest.mark.timeout(60)  # In quadratic time it takes minutes.
def test_many_angle_brackets(text):
    assert TAG.sub(" ", f"{text}<b>x</b>").endswith(" x ")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.TXT", ENGLISH, ENGLISH[::-1]),
        ("a.html", f"<p>{ENGLISH}</p>", f"<p>{ENGLISH[::-1]}</p>"),
        ("a.md", "Two cats", "stac owT"),
        ("a.Srt", f"{TIMES}Two\ncats", f"{TIMES}stac owT"),
        ("a.vtt", f"WEBVTT\n\n{TIMES}- Yes.", f"WEBVTT\n\n{TIMES}- .seY"),
        ("a.srt", "no subtitles", "no subtitles"),
    ],
)
def test_files_keep_their_structure(service, name, content, expected):
    answer = service.post_file(
        "/translate_file", name, content.encode(), source="EN", target="ES"
    )
    url = answer.json()["translatedFileUrl"]
    file = service.get(url.removeprefix(service.url))

    assert file.data.decode() == expected
    suffix = name.lower().removeprefix("a")
    assert f'"a_es{suffix}"' in file.headers["content-disposition"]
