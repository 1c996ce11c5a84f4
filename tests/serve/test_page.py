"""The page of the service in a browser."""

import numpy as np
import pytest

from serve.options import HttpOptions
from tests.helpers import chromium, service_client
from tests.helpers.chromium import contrasts
from tests.helpers.example_sentences import TEXT_WITH_MARKUP
from tests.helpers.fake_models import FunctionRuntime
from translate.runtime.runtime import Translation

pytestmark = pytest.mark.peers("chromium")
LINES = f"Two cats sleep.\n\n{TEXT_WITH_MARKUP}\n12:30\nIs it raining?"
READY = "document.querySelectorAll('#from option').length > 0"
WEIGHT = 0.9  # Of attention, to the word of the same place from the end.


class Loud(FunctionRuntime):
    """A model that shouts the words of a text in the other order."""

    features = ("alternatives", "words")

    def __init__(self):
        super().__init__(None)

    def translate(self, texts):
        return [Translation(loud(text), False) for text in texts]

    def find_alternatives(self, texts, beam_size):
        marks = ["", *"!?…"][:beam_size]
        return [[loud(text) + mark for mark in marks] for text in texts]

    def find_words(self, pairs):
        return [describe(*pair) for pair in pairs]


class Quiet(Loud):
    """A model that can do nothing else."""

    features = ()


def loud(text):
    return " ".join(text.upper().split()[::-1])


def describe(source, target):
    sources, targets = source.split(), target.split()
    count = len(sources)
    weights = np.full([len(targets), count], (1 - WEIGHT) / max(count - 1, 1))
    np.fill_diagonal(weights[:, ::-1], WEIGHT)
    weights[:, [word == "dropped" for word in sources]] = 0
    return {
        "source": [{"text": w, "space": n > 0} for n, w in enumerate(sources)],
        "target": [
            {"text": word, "space": n > 0, "probability": 1 / (n + 1), "weights": row}
            for n, (word, row) in enumerate(zip(targets, weights.tolist(), strict=True))
        ],
    }


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.browse(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def service():
    models = {("en", "es"): Loud(), ("es", "en"): Loud(), ("pt", "fr"): Quiet()}
    with service_client.serve(models, char_limit=1000) as service:
        yield service


@pytest.fixture
def page(browser, service):
    """The page, with a text that is translated."""
    browser.resize(1200, 900)
    browser.open(service.url)
    wait(browser, READY)
    browser.complaints.clear()
    browser.requests.clear()
    write(browser, LINES)
    wait(browser, "document.querySelectorAll('#output .word').length > 8")
    return browser


def write(page, text):
    wait(page, READY)
    page.evaluate("document.getElementById('text').focus()")
    page.call("Input.insertText", text=text)


def wait(page, expression):
    service_client.wait_until(lambda: page.evaluate(expression))


def text_of(page, selector):
    return page.evaluate(f"document.querySelector({selector!r}).textContent")


def texts_in(page, selector):
    return page.evaluate(
        f"[...document.querySelectorAll({selector!r})].map((e) => e.innerText)"
    )


def choose_first(page):
    page.click(".sentence")
    wait(page, "document.querySelectorAll('#others button').length > 0")


def test_a_text_is_translated_as_it_is_typed(page, service):
    lines = [line if line == "12:30" else loud(line) for line in LINES.split("\n")]
    expected = "\n".join(lines)

    assert text_of(page, "#output") == expected
    assert page.evaluate("document.querySelector('#output b')") is None
    assert page.complaints == []
    assert {url.partition("?")[0] for url in page.requests} == {
        f"{service.url}/{path}" for path in ("sentences", "words")
    }
    assert texts_in(page, "#spoken p")[0] == "SLEEP. CATS TWO"
    assert text_of(page, "#count") == f"{len(LINES)} of 1,000 characters"
    page.call("Input.insertText", text=" Really!")
    wait(page, "document.querySelectorAll('#spoken p').length > 3")
    # Only what is new is spoken.
    assert texts_in(page, "#spoken p")[3:] == ["REALLY!"]


def test_a_word_shows_its_alignment_and_its_confidence(page):
    page.hover(".sentence .word:nth-of-type(2)")
    assert text_of(page, "#status") == (
        "CATS: probability 50 %, aligned with cats 90 %"
    )

    colours = page.evaluate(
        "[...document.querySelector('.sentence').querySelectorAll('.word')]"
        ".map((e) => getComputedStyle(e).boxShadow)"
    )
    assert len(set(colours)) == 3  # By their confidence.
    choose_first(page)
    assert texts_in(page, "#alignment small") == ["100 %", "50 %", "33 %"]
    page.hover("#alignment ol:last-child li:nth-child(1) button")
    assert text_of(page, "#status").startswith("SLEEP.: probability 100 %, ")
    shades = page.evaluate(
        "[...document.querySelectorAll('#alignment ol:first-of-type button')]"
        ".map((e) => +e.style.getPropertyValue('--w'))"
    )
    np.testing.assert_allclose(shades, [1 / 18, 1 / 18, 1])
    page.hover("#alignment ol:first-of-type li:nth-child(1) button")
    assert text_of(page, "#status") == "Two: attended to for TWO"


def test_an_alternative_takes_the_place_of_a_sentence(page):
    choose_first(page)
    expected = ["SLEEP. CATS TWO" + mark for mark in ("", *"!?…")]
    assert texts_in(page, "#others button") == expected
    page.click("#others li:nth-child(3) button")

    assert text_of(page, ".sentence") == "SLEEP. CATS TWO?"
    pressed = "#others [aria-pressed=true]"
    assert texts_in(page, pressed) == ["SLEEP. CATS TWO?"]
    # The words of the new sentence arrive, and the focus stays.
    wait(page, "document.querySelectorAll('#alignment button').length > 0")
    assert page.evaluate(f"document.activeElement.matches({pressed!r})")
    # It stays when more is typed.
    write(page, " And more.")
    wait(page, "document.getElementById('output').innerText.includes('MORE')")
    assert text_of(page, ".sentence") == "SLEEP. CATS TWO?"
    assert text_of(page, ".sentence:last-child").startswith("MORE. AND")


def test_words_without_a_share_in_the_translation_are_named(page):
    assert page.evaluate("document.getElementById('uncovered').hidden")

    write(page, " Two dropped 12 dropped.")
    wait(page, "!document.getElementById('uncovered').hidden")
    page.click(".sentence:last-child")

    assert text_of(page, "#uncovered").endswith("aligned with: dropped")
    assert texts_in(page, "#alignment .uncovered") == ["dropped"]


def test_languages_are_swapped_with_the_texts(page):
    page.click("#swap")
    wait(page, "document.getElementById('from').value === 'es'")

    assert page.evaluate("document.getElementById('text').value").startswith(
        "SLEEP. CATS TWO\n"
    )
    wait(page, "document.getElementById('output').innerText.includes('TWO CATS')")
    assert texts_in(page, "#to option") == ["English"]
    page.choose("#from", "pt")
    wait(page, "document.getElementById('swap').disabled")
    page.choose("#from", "en")


def test_a_translation_is_copied(page):
    page.click("#copy")
    wait(page, "!!document.getElementById('status').textContent")

    assert text_of(page, "#status") == "The translation is copied."
    length = len(text_of(page, "#output"))
    assert text_of(page, "#output-count") == f"{length} characters"


def test_the_keyboard_reaches_all(page):
    page.evaluate("document.getElementById('text').focus()")
    for key in ("Tab", "ArrowRight", "ArrowDown", "ArrowLeft", "Enter"):
        page.press(key)
    wait(page, "document.querySelectorAll('#others button').length > 0")
    assert texts_in(page, ".sentence[aria-pressed=true]") == [loud(TEXT_WITH_MARKUP)]
    seen = []
    for _ in range(5):
        page.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent"))
    assert seen[:3] == ["Copy", "Two", "</SCRIPT><B>SLEEP</B>.100 %"]
    assert seen[3:] == [loud(TEXT_WITH_MARKUP), loud(TEXT_WITH_MARKUP) + "!"]
    page.evaluate("document.querySelector('#alignment ol:last-child button').focus()")
    page.press("ArrowRight")
    assert page.evaluate("document.activeElement.ariaLabel") == text_of(page, "#status")
    stops = "#alignment ol:last-child [tabindex='0']"
    assert len(texts_in(page, stops)) == 1


def test_what_is_there_has_a_name_for_a_screen_reader(page):
    choose_first(page)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "combobox", "textbox", "list", "group", "form", "region"}
    named = [
        (node["role"]["value"], node["name"]["value"])
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]

    assert len(named) > 15
    assert [role for role, name in named if not name] == []
    names = [name for _, name in named]
    for name in ("Text", "From", "To", "Translation", "SLEEP. CATS TWO"):
        assert name in names
    live = page.evaluate("document.getElementById('spoken').ariaLive")
    assert live == "polite"


def test_a_model_that_shows_less_says_so(page):
    page.choose("#from", "pt")
    assert texts_in(page, "#to option") == ["French"]
    wait(page, "!document.querySelector('.sentence .word')")
    page.click(".sentence")

    assert "align and score" in text_of(page, "#no-words")
    assert page.evaluate("document.getElementById('alignment').hidden")
    assert text_of(page, "#no-others") == ("This model returns one translation only.")
    assert page.complaints == []


def test_a_key_can_be_given(browser, tmp_path):
    (tmp_path / "keys").write_text("secret")
    http = HttpOptions(port=0, api_keys=tmp_path / "keys")
    with service_client.serve({("en", "es"): Loud()}, http) as service:
        browser.open(service.url)
        write(browser, "Two cats.")
        wait(browser, "!document.getElementById('problem').hidden")
        told = text_of(browser, "#problem")
        browser.click("#key")
        browser.call("Input.insertText", text="secret")
        browser.press("Tab")
        wait(browser, "!!document.querySelector('.sentence .word')")

    assert told == "Please contact the server operator to get an API key"
    assert text_of(browser, "#output") == "CATS. TWO"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_can_be_read_in_either_scheme(page, scheme):
    """Contrast of 4.5 to 1 and more, of 3 to 1 for what is no text.

    (WCAG 2.2, 1.4.3 and 1.4.11.)
    """
    page.prefer(prefers_color_scheme=scheme)
    choose_first(page)
    page.evaluate("document.querySelector('#alignment ol button').focus()")
    lowest = {
        selector: min(contrasts(page, selector, "color"))
        for selector in (
            *("body", ".note", "#text", ".word", ".words button", "small"),
            *("#others button", "select", "#status"),
        )
    }
    borders = contrasts(
        page, "select, #text, #others button, .words button", "borderTopColor"
    )
    page.prefer()

    assert {s: ratio for s, ratio in lowest.items() if ratio < 4.5} == {}
    assert min(borders) >= 3


def test_a_narrow_window_scrolls_only_down(page):
    choose_first(page)
    page.resize(320, 700)
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")

    assert widths[0] <= widths[1]
