"""Tests of the page of `translate.explain` in a browser."""

import copy
import json

import numpy as np
import pytest

from tests.helpers import chromium
from tests.helpers.chromium import contrasts
from tests.helpers.example_sentences import TEXT_WITH_MARKUP
from tests.helpers.signature_requests import hypotheses_of_beam
from translate.report.explanation_page import render

pytestmark = pytest.mark.peers("chromium")
SELECTED = "#map td[tabindex='0']"


@pytest.fixture(scope="module")
def report(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(data), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(report, tmp_path_factory):
    with chromium.browse(tmp_path_factory.mktemp("profile")) as page:
        page.resize(1200, 900)
        page.open(report)
        yield page


@pytest.fixture
def spread(page, report, data, tmp_path):
    """The page of weights that are spread over 0 to 1 in the map it shows."""
    data = copy.deepcopy(data)
    target = data["target"]
    *_, rows, columns = shape = np.shape(target["encoder_decoder_attention"])
    weights = np.linspace(0, 1, rows * columns).reshape(rows, columns)
    target["encoder_decoder_attention"] = np.broadcast_to(weights, shape).tolist()
    path = tmp_path / "spread.html"
    path.write_text(render(data), encoding="utf-8")
    page.open(path)
    yield page
    page.open(report)


def texts_in(page, selector):
    return page.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        ".map((element) => element.textContent)"
    )


def status(page):
    return page.evaluate("document.getElementById('status').textContent")


def numbers_in(page):
    rows = page.evaluate(
        "[...document.querySelectorAll('#map tbody tr')].map((row) =>"
        " [...row.querySelectorAll('td')].map((cell) => +cell.textContent))"
    )
    return np.array(rows)


def test_a_browser_shows_it_without_a_complaint(page, data):
    own = data["target"]

    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("file:")] == []
    assert texts_in(page, "#summary tbody tr:first-child td")[0] == TEXT_WITH_MARKUP
    pieces = texts_in(page, "#confidence bdi")
    assert pieces == own["tokens"]
    shown = [float(p.rstrip(" %")) for p in texts_in(page, "#confidence small")]
    np.testing.assert_allclose(
        shown, 100 * np.exp(own["token_log_probabilities"]), atol=0.51
    )
    assert texts_in(page, "#map thead th bdi") == data["source"]["tokens"]
    assert texts_in(page, "#map tbody th bdi") == own["tokens"]


def test_selections_change_the_map(page, data):
    """Each of the maps is the one in the data, whatever is chosen."""
    page.evaluate(
        "window.synthetic = [];"
        "addEventListener('change', (event) => {"
        " if (!event.isTrusted) synthetic.push(event.target.id); })"
    )
    for kind in ("encoder_attention", "decoder_attention"):
        for layer, head in ((0, 1), (1, 0)):
            page.choose("#kind", kind)
            page.choose("#layer", layer)
            page.choose("#head", head)
            where = data if kind in data else data["target"]
            expected = np.array(where[kind][layer][head])
            found = numbers_in(page)
            np.testing.assert_allclose(found, 100 * expected, atol=0.51)
    tokens = data["target"]["tokens"]
    assert texts_in(page, "#map thead th bdi") == ["<s>", *tokens[:-1]]
    page.choose("#head", "mean")
    mean = np.mean(data["target"]["decoder_attention"][1], axis=0)
    np.testing.assert_allclose(numbers_in(page), 100 * mean, atol=0.51)
    page.choose("#kind", "encoder_decoder_attention")
    assert page.complaints == page.evaluate("synthetic") == []


def test_a_click_on_a_small_map_enlarges_it(page, data):
    page.click("#overview button[aria-label='layer 1, head 2']")

    expected = data["target"]["encoder_decoder_attention"][0][1]
    np.testing.assert_allclose(numbers_in(page), 100 * np.array(expected), atol=0.51)
    pressed = page.evaluate(
        "[...document.querySelectorAll('#overview [aria-pressed=true]')]"
        ".map((button) => button.ariaLabel)"
    )
    others = page.evaluate(
        "document.querySelectorAll('#overview [aria-pressed=false]').length"
    )
    assert pressed == ["layer 1, head 2"]
    assert others == 2 * 3 - 1  # Layers; heads and their mean.
    assert page.evaluate("document.activeElement.ariaLabel") == pressed[0]


def test_hovering_tells_and_marks(page, data):
    own = data["target"]
    before = status(page)
    page.hover("#map tbody tr:nth-child(2) td:nth-of-type(3)")

    assert status(page) != before
    assert " attends to " in status(page)
    assert len(texts_in(page, "#map th.seen")) == 2
    page.hover("#confidence li:nth-child(2)")
    log = own["token_log_probabilities"][1]
    assert status(page).startswith(f"{own['tokens'][1]}: probability")
    assert status(page).endswith(f"log-probability {log:.3f}")
    assert texts_in(page, "#map th.seen") == []


@pytest.mark.parametrize(
    ("box", "keys", "place"),
    [
        ("alignment", "Down Right Down", (1, 2)),
        ("overview", "Right Right Right Down Down", (1, 2)),
        ("overview", "Down Right Left Left Up", (0, 0)),
        ("map", "Right Down Down Left Left Up", (1, 0)),
    ],
)
def test_arrow_keys_walk(page, report, data, box, keys, place):
    page.open(report)
    page.choose("#layer", 0)
    page.evaluate(f"document.querySelector('#{box} [tabindex=\"0\"]').focus()")
    for key in keys.split():
        page.press(f"Arrow{key}")

    found, stops = page.evaluate(
        "(() => { const focused = document.activeElement;"
        f" const box = document.getElementById('{box}');"
        " const stops = [...box.querySelectorAll('[tabindex=\"0\"]')];"
        " const at = [...box.querySelectorAll('button, td')].indexOf(focused);"
        " return [at, stops.map((stop) => stop === focused)]; })()"
    )
    page.open(report)
    # Source and target follow each other, and so do layers.
    row = 3 if box == "overview" else len(data["source"]["tokens"])
    assert divmod(found, row) == place
    assert stops == [True]


def test_the_tree_is_the_beam(page, data, ask):
    beam = data["beam"]
    parents = np.array(beam["parents"])
    kept = np.array(beam["kept"])

    assert len(texts_in(page, "#tree button")) == (parents >= 0).sum()
    pruned = (parents >= 0) & ~kept
    assert len(texts_in(page, "#tree button.pruned")) == pruned.sum() > 0
    ended = np.array(beam["ended"]).sum()
    assert len(texts_in(page, "#tree button.ended")) == ended > 0
    _, best = hypotheses_of_beam(ask("explain_beam", text=TEXT_WITH_MARKUP))[0]
    assert tuple(texts_in(page, "#tree button.best bdi")) == best
    page.click("#pruned")
    assert len(texts_in(page, "#tree button")) == kept.sum()
    page.click("#pruned")

    page.evaluate("document.querySelector('#tree [tabindex=\"0\"]').focus()")
    assert status(page).startswith("Step 1: ")
    page.press("ArrowRight")
    assert status(page).startswith("Step 2: ")
    child = beam["parents"][1].index(0)  # Its best continuation.
    log = f"{beam['log_probabilities'][1][child]:.3f}"
    assert f"log-probability {log}, penalty {beam['penalties'][1]:.3f}" in (
        status(page)
    )
    page.press("ArrowLeft")
    page.press("ArrowDown")
    assert page.evaluate("document.querySelectorAll('#tree .seen').length") == 2
    rows = texts_in(page, "#steps tbody tr")
    assert len(rows) == (parents >= 0).sum()


def test_tab_reaches_each_part_and_every_control_has_a_name(page):
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.click("h1")
    seen = []
    for _ in range(200):
        page.press("Tab")
        part = page.evaluate("(document.activeElement.closest('[id]') || {}).id")
        if not part:
            break
        seen.append(part)
    for part in ("layer", "head"):
        assert part in seen
    for part in ("confidence", "alignment", "overview", "map", "tree"):
        assert seen.count(part) == 1
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    controls = [
        node
        for node in nodes
        if not node["ignored"]
        and node["role"]["value"]
        in ("button", "combobox", "checkbox", "grid", "gridcell")
    ]
    assert len(controls) > 30
    assert all(node["name"]["value"] for node in controls)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_can_be_seen_in_either_scheme(spread, scheme):
    """Contrast is 4.5 to 1 and more, and 3 to 1 for non-text parts (WCAG 2.2)."""
    spread.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    spread.click("#numbers")
    spread.evaluate(f'document.querySelector("{SELECTED}").focus()')
    found = {
        selector: contrasts(spread, selector, "color")
        for selector in (
            *("body", "section p", ".pieces small", "#tree small"),
            *("#map td", "#map th.seen", "button", "select"),
        )
    }
    borders = contrasts(spread, "button, select", "borderTopColor")
    paths = contrasts(spread, "#tree path", "stroke")
    spread.prefer()

    assert len(borders) > len(paths) > 30
    assert min(*borders, *paths) >= 3
    assert len(found["#map td"]) > 50
    assert len(found["#map th.seen"]) == 2
    lowest = {selector: min(ratios) for selector, ratios in found.items()}
    assert {s: ratio for s, ratio in lowest.items() if ratio < 4.5} == {}


def test_the_layout_follows_the_width(page):
    """A narrow window scrolls only down; a wide one has the attention on the right."""
    page.resize(360, 800)
    narrow, shown = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    page.resize(1280, 900)
    alignment, attention, width = page.evaluate(
        "[...['alignment', 'overview'].map((id) =>"
        " document.getElementById(id).closest('section').getBoundingClientRect()"
        ".toJSON()), document.documentElement.scrollWidth]"
    )
    page.resize(1200, 900)

    assert narrow <= shown
    assert alignment["right"] < attention["left"] < 640 < attention["right"]
    assert attention["top"] < alignment["top"]
    assert width <= 1280
