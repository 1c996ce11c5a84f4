"""Tests of `export.explain`: the page, and what a browser makes of it."""

import copy
import json
import re

import numpy as np
import pytest
import tensorflow as tf

from export import explain
from tests.helpers import chromium
from tests.helpers.refusal import refusal
from tests.helpers.requests import read_beam
from tests.helpers.sentences import SENTENCES

# It would close the element that holds the data, were it not escaped.
TEXT = "Two cats </script><b>sleep</b>."
REFERENCE = "sleep. cats Two"
SELECTED = "#map td[tabindex='0']"


@pytest.fixture(scope="module")
def ask(export_dir):
    return explain.load_ask(export_dir)


@pytest.fixture(scope="module")
def data(ask):
    return explain.explain(ask, TEXT.encode(), REFERENCE.encode())


@pytest.fixture(scope="module")
def report(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(explain.render(data), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(report, tmp_path_factory):
    """The report in a browser."""
    if chromium.COMMAND is None:
        pytest.skip("needs chromium on the PATH")
    with chromium.browse(tmp_path_factory.mktemp("profile")) as page:
        page.resize(1200, 900)
        page.open(report)
        yield page


@pytest.fixture
def spread(page, report, data, tmp_path):
    """The page of weights that are spread over 0 to 1 in the map it shows."""
    data = copy.deepcopy(data)
    target = data["targets"][0]
    *_, rows, columns = shape = np.shape(target["encoder_decoder_attention"])
    weights = np.linspace(0, 1, rows * columns).reshape(rows, columns)
    target["encoder_decoder_attention"] = np.broadcast_to(
        weights, shape
    ).tolist()
    path = tmp_path / "spread.html"
    path.write_text(explain.render(data), encoding="utf-8")
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
    """Returns the heat map that is shown, in percent."""
    rows = page.evaluate(
        "[...document.querySelectorAll('#map tbody tr')].map((row) =>"
        " [...row.querySelectorAll('td')].map((cell) => +cell.textContent))"
    )
    return np.array(rows)


def test_the_command_writes_one_file_that_needs_nothing(
    ask, export_dir, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(explain, "load_ask", {export_dir: ask}.get)
    output = tmp_path / "report.html"

    explain.main(
        [
            *("--export-dir", str(export_dir), "--text", TEXT),
            *("--reference", REFERENCE, "--output", str(output)),
        ]
    )

    assert f"{output} is written" in capsys.readouterr().out
    html = output.read_text("utf-8")
    assert not re.findall(
        r"(?:src|href)\s*=|url\(|@import|https?://(?!www.w3)", html
    )
    (embedded,) = re.findall(r'type="application/json" id="data">(.*?)</', html)
    found = json.loads(embedded)
    assert found["source"]["text"] == TEXT
    assert [target["name"] for target in found["targets"]] == [
        "Translation",
        "Reference",
    ]


def test_the_page_has_what_the_export_says(ask, data):
    best = ask("serving_default", text=TEXT)
    own, reference = data["targets"]

    assert own["text"] == best["translation"].decode()
    assert reference["text"] == REFERENCE
    assert np.shape(data["encoder_attention"])[:2] == (2, 2)
    for target in data["targets"]:
        outputs = ask("explain", source=TEXT, target=target["text"])
        for name in explain.OF_TARGETS:
            np.testing.assert_allclose(target[name], outputs[name], atol=6e-5)
        assert target["score"] == pytest.approx(outputs["score"], abs=6e-5)
    beam = ask("explain_beam", text=TEXT)
    assert data["beam"]["kept"] == beam["kept"].tolist()


def test_notes_say_what_is_not_as_it_seems(ask):
    beam = ask("explain_beam", text=SENTENCES[0])
    path = explain.best_path(beam)
    pieces = [beam["tokens"][step, rank] for step, rank in enumerate(path)]

    def notes(found, pieces, target_truncated=False):
        own = {
            "source_tokens": np.array([b"a"], object),
            "target_tokens": np.array(pieces, object),
            "target_truncated": target_truncated,
        }
        return explain.make_notes(found, beam, path, {"Translation": own})

    assert notes({"truncated": False}, pieces) == []
    (note,) = notes({"truncated": True}, pieces)
    assert "was cut at the limit" in note
    other = [*pieces[:-1], b"x", b"</s>"]
    (note,) = notes({"truncated": False}, other)
    assert "other pieces" in note
    (note,) = notes({"truncated": False}, other, target_truncated=True)
    assert note.startswith("Translation: the text is longer")


def test_of_long_texts_only_the_first_pieces_are_shown(ask, data, monkeypatch):
    monkeypatch.setattr(explain, "SHOWN", 3)

    found = explain.explain(ask, TEXT.encode(), REFERENCE.encode())

    assert found["source"]["tokens"] == data["source"]["tokens"][:3]
    assert found["source"]["pieces"] == len(data["source"]["tokens"])
    whole = np.array(data["encoder_attention"])
    np.testing.assert_array_equal(
        found["encoder_attention"], whole[..., :3, :3]
    )
    for target, of_all in zip(found["targets"], data["targets"], strict=True):
        assert target["score"] == of_all["score"]
        assert target["tokens"] == of_all["tokens"][:3]
        assert target["pieces"] == len(of_all["tokens"])
        assert target["log_probability"] == pytest.approx(
            sum(of_all["token_log_probabilities"]), abs=5e-3
        )
        for name in ("decoder_attention", "encoder_decoder_attention"):
            assert np.shape(target[name])[2:] == (3, 3)
    assert len(found["beam"]["tokens"]) == len(found["beam"]["best"]) == 3
    assert found["beam"]["steps"] == len(data["beam"]["tokens"])
    assert any("first 3 pieces" in note for note in found["notes"])
    assert not any("first" in note for note in data["notes"])


def test_targets_that_are_cut_are_told(ask):
    long = b" ".join(s.encode() for s in SENTENCES * 3)

    def answer(name, **texts):
        """Translates into what is longer than the model takes."""
        outputs = ask(name, **texts)
        changed = {"translation": long} if name == explain.SIGNATURE else {}
        return {**outputs, **changed}

    notes = explain.explain(answer, TEXT.encode(), long)["notes"]

    for name in ("Translation", "Reference"):
        assert sum(note.startswith(f"{name}: the text is") for note in notes)
    assert not any("other pieces" in note for note in notes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", " "], "--text must hold some text. Received: ' '"),
        (
            ["--text", "A dog.", "--reference", ""],
            "--reference must hold some text. Received: ''",
        ),
    ],
)
def test_refuses_texts_without_text(
    ask, export_dir, tmp_path, capsys, monkeypatch, arguments, message
):
    monkeypatch.setattr(explain, "load_ask", {export_dir: ask}.get)
    output = tmp_path / "report.html"

    line = refusal(
        capsys,
        explain.main,
        ["--export-dir", export_dir, "--output", output, *arguments],
    )

    assert message in line
    assert not output.exists()


def test_refuses_what_is_no_export_that_explains(tmp_path, capsys):
    there = ["--text", "a", "--output", tmp_path / "x", "--export-dir"]
    line = refusal(capsys, explain.main, [*there, tmp_path])
    assert "`python -m export` wrote" in line

    module = tf.Module()
    module.call = tf.function(
        lambda text: {"translation": text},
        input_signature=[tf.TensorSpec([None], tf.string, name="text")],
    )
    tf.saved_model.save(
        module, str(tmp_path / "1"), {"serving_default": module.call}
    )
    line = refusal(capsys, explain.main, [*there, tmp_path])
    assert "without explain, explain_beam" in line


def test_bytes_that_are_no_text_are_drawn(ask):
    data = explain.explain(ask, b"A \xff dog")

    json.loads(json.dumps(data)).pop("source")
    assert "\ufffd" in data["source"]["text"]


def test_a_browser_shows_it_without_a_complaint(page, data):
    own = data["targets"][0]

    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("file:")] == []
    assert texts_in(page, "#summary tbody tr:first-child td")[0] == TEXT
    pieces = texts_in(page, "#confidence bdi")
    assert pieces == own["tokens"]
    shown = [float(p.rstrip(" %")) for p in texts_in(page, "#confidence small")]
    np.testing.assert_allclose(
        shown, 100 * np.exp(own["token_log_probabilities"]), atol=0.51
    )
    assert texts_in(page, "#map thead th bdi") == data["source"]["tokens"]
    assert texts_in(page, "#map tbody th bdi") == own["tokens"]


def test_the_summary_is_of_whole_texts(page, data, report, tmp_path):
    data = copy.deepcopy(data)
    for side in (data["source"], *data["targets"]):
        side["pieces"] += 100
    for target in data["targets"]:
        target["log_probability"] -= 100
    path = tmp_path / "long.html"
    path.write_text(explain.render(data), encoding="utf-8")
    page.open(path)
    rows = page.evaluate(
        "[...document.querySelectorAll('#summary tbody tr')].map((row) =>"
        " [...row.cells].slice(-2).map((cell) => cell.textContent))"
    )
    page.open(report)

    assert rows == [
        ["–", str(data["source"]["pieces"])],
        *(
            [f"{target['log_probability']:.3f}", str(target["pieces"])]
            for target in data["targets"]
        ),
    ]


def test_selections_change_the_map(page, data):
    """Each of the maps is the one in the data, whatever is chosen."""
    page.evaluate(
        "window.synthetic = [];"
        "addEventListener('change', (event) => {"
        " if (!event.isTrusted) synthetic.push(event.target.id); })"
    )
    for kind in ("encoder_attention", "decoder_attention"):
        for target, layer, head in ((0, 0, 1), (1, 1, 0)):
            page.choose("#target", target)
            page.choose("#kind", kind)
            page.choose("#layer", layer)
            page.choose("#head", head)
            where = data if kind in data else data["targets"][target]
            expected = np.array(where[kind][layer][head])
            found = numbers_in(page)
            np.testing.assert_allclose(found, 100 * expected, atol=0.51)
    reference = data["targets"][1]["tokens"]
    assert texts_in(page, "#map thead th bdi") == ["<s>", *reference[:-1]]
    page.choose("#head", "mean")
    np.testing.assert_allclose(
        numbers_in(page), 100 * np.mean(expected_all(data), 0), atol=0.51
    )
    page.choose("#target", 0)
    page.choose("#kind", "encoder_decoder_attention")
    assert page.complaints == page.evaluate("synthetic") == []


def expected_all(data):
    return data["targets"][1]["decoder_attention"][1]


def test_a_click_on_a_small_map_enlarges_it(page, data):
    page.click("#overview button[aria-label='layer 1, head 2']")

    expected = data["targets"][0]["encoder_decoder_attention"][0][1]
    np.testing.assert_allclose(
        numbers_in(page), 100 * np.array(expected), atol=0.51
    )
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


def test_hovering_tells_and_marks(page):
    before = status(page)
    page.hover("#map tbody tr:nth-child(2) td:nth-of-type(3)")

    assert status(page) != before
    assert " looks at " in status(page)
    assert len(texts_in(page, "#map th.seen")) == 2
    page.hover("#confidence li")
    assert "probability" in status(page)
    assert texts_in(page, "#map th.seen") == []


def test_a_piece_shows_its_lines_alone(page):
    lines = "document.querySelectorAll('#alignment line:not(.faint)').length"
    everything = page.evaluate(lines)
    page.hover("#alignment ol:last-child li:nth-child(2) button")
    assert 0 < page.evaluate(lines) < everything

    page.click("#alignment ol:last-child li:nth-child(2) button")
    page.hover("h1")
    assert 0 < page.evaluate(lines) < everything
    page.press("Enter")  # The button has the focus: chosen no more.
    page.evaluate("document.activeElement.blur()")
    assert page.evaluate(lines) == everything


def test_arrow_keys_walk_through_the_map(page):
    page.evaluate(f'document.querySelector("{SELECTED}").focus()')
    first = status(page)
    page.press("ArrowRight")
    page.press("ArrowDown")

    assert status(page) != first
    place = page.evaluate(
        "[document.activeElement.parentElement.rowIndex,"
        " document.activeElement.cellIndex]"
    )
    assert place == [2, 2]
    assert (
        page.evaluate(
            "document.querySelectorAll('#map td[tabindex=\"0\"]').length"
        )
        == 1
    )


def test_arrow_keys_walk_through_the_pieces(page, report, data):
    page.open(report)  # The first piece is where it begins.
    own = data["targets"][0]
    selected = "#confidence [tabindex='0']"
    page.evaluate(f'document.querySelector("{selected}").focus()')
    page.press("ArrowRight")

    log = own["token_log_probabilities"][1]
    assert status(page).startswith(f"{own['tokens'][1]}: probability")
    assert status(page).endswith(f"log-probability {log:.3f}")
    assert texts_in(page, f"{selected} bdi") == [own["tokens"][1]]


@pytest.mark.parametrize(
    ("box", "keys", "place"),
    [
        ("alignment", "Down Right Down", (1, 2)),
        ("alignment", "Right Down Left Up Up Left", (0, 0)),
        ("overview", "Right Right Right Down Down", (1, 2)),
        ("overview", "Down Right Left Left Up", (0, 0)),
    ],
)
def test_arrow_keys_walk_through_buttons(page, report, data, box, keys, place):
    page.open(report)
    page.choose("#layer", 0)
    page.evaluate(f"document.querySelector('#{box} [tabindex=\"0\"]').focus()")
    for key in keys.split():
        page.press(f"Arrow{key}")

    found, stops = page.evaluate(
        "(() => { const focused = document.activeElement;"
        f" const box = document.getElementById('{box}');"
        " const stops = [...box.querySelectorAll('[tabindex=\"0\"]')];"
        " const at = [...box.querySelectorAll('button')].indexOf(focused);"
        " return [at, stops.map((stop) => stop === focused)]; })()"
    )
    page.open(report)
    # Source and target stand behind each other, as do layers.
    row = {"alignment": len(data["source"]["tokens"]), "overview": 3}[box]
    assert divmod(found, row) == place
    assert stops == [True]


@pytest.mark.parametrize("size", [(1200, 260), (360, 420)])
def test_no_bar_hides_what_has_the_focus(page, size):
    """Focus not obscured (WCAG 2.2, 2.4.11)."""
    page.choose("#kind", "encoder_attention")
    page.resize(*size)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.click("h1")
    # Not beyond an edge: there the keys scroll the page, as ever.
    steps = {"alignment": 5, "overview": 1, "map": 9, "tree": 2}
    hidden, seen = [], {}
    while len(seen) < 100 and "SUMMARY" not in seen.values():
        seen[len(seen)] = part = press_and_look(page, "Tab", hidden)
        count = steps.get(part, 0)
        for arrow in ["ArrowDown"] * count + ["ArrowUp"] * count:
            press_and_look(page, arrow, hidden)
    page.resize(1200, 900)
    page.choose("#kind", "encoder_decoder_attention")

    parts = {"target", "confidence", "alignment", "overview", "map", "tree"}
    assert parts < {*seen.values()}
    assert hidden == []


def press_and_look(page, key, hidden):
    """Returns the part that has the focus then; adds to `hidden` what is."""
    page.press(key)
    part, text, bars = page.evaluate(
        "(() => { const focused = document.activeElement;"
        " const box = focused.getBoundingClientRect();"
        " const over = ['.controls', '#status'].filter((name) => {"
        "  const bar = document.querySelector(name);"
        "  const { top, bottom } = bar.getBoundingClientRect();"
        "  return !bar.contains(focused)"
        "   && box.top < bottom && box.bottom > top; });"
        " const part = focused.closest('[id]');"
        " return [part ? part.id : focused.tagName, focused.textContent, over];"
        "})()"
    )
    hidden.extend((key, part, text, bar) for bar in bars)
    return part


def test_the_tree_is_the_beam(page, data, ask):
    beam = data["beam"]
    parents = np.array(beam["parents"])
    kept = np.array(beam["kept"])

    assert len(texts_in(page, "#tree button")) == (parents >= 0).sum()
    pruned = (parents >= 0) & ~kept
    assert len(texts_in(page, "#tree button.pruned")) == pruned.sum() > 0
    ended = np.array(beam["ended"]).sum()
    assert len(texts_in(page, "#tree button.ended")) == ended > 0
    _, best = read_beam(ask("explain_beam", text=TEXT))[0]
    assert tuple(texts_in(page, "#tree button.best bdi")) == best
    page.click("#pruned")
    assert len(texts_in(page, "#tree button")) == kept.sum()
    page.click("#pruned")

    page.evaluate("document.querySelector('#tree [tabindex=\"0\"]').focus()")
    assert status(page).startswith("Step 1: ")
    page.press("ArrowRight")
    assert status(page).startswith("Step 2: ")
    child = beam["parents"][1].index(0)  # The best that goes on from there.
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
        part = page.evaluate(
            "(document.activeElement.closest('[id]') || {}).id"
        )
        if not part:
            break
        seen.append(part)
    for part in ("target", "head"):
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
def test_text_can_be_read_in_either_scheme(spread, scheme):
    """Contrast of 4.5 to 1 and more (WCAG 2.2, 1.4.3)."""
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
    spread.prefer()

    assert len(found["#map td"]) > 50
    assert len(found["#map th.seen"]) == 2
    lowest = {selector: min(ratios) for selector, ratios in found.items()}
    assert {s: ratio for s, ratio in lowest.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_controls_and_the_tree_can_be_seen_in_either_scheme(page, scheme):
    """Contrast of 3 to 1 and more (WCAG 2.2, 1.4.11)."""
    page.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    borders = contrasts(page, "button, select", "borderTopColor")
    paths = contrasts(page, "#tree path", "stroke")
    page.prefer()

    assert len(borders) > len(paths) > 30
    assert min(*borders, *paths) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_has_the_heat_of_each_cell(spread, tmp_path, scheme):
    spread.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    places = spread.evaluate(
        "document.getElementById('map').scrollIntoView({block: 'center'}),"
        "[...document.querySelectorAll('#map td')].map((cell) => {"
        " const box = cell.getBoundingClientRect();"
        " return [Math.round(box.y + box.height / 2),"
        "  Math.round(box.x + box.width / 2)]; })"
    )
    spread.screenshot(tmp_path / "page.png")
    spread.prefer()

    png = tf.io.decode_png((tmp_path / "page.png").read_bytes(), channels=3)
    found = luminance(png.numpy()[tuple(np.transpose(places))])
    if scheme == "light":
        found = found[::-1]
    assert (np.diff(found) >= 0).all()
    assert (found[-1] + 0.05) / (found[0] + 0.05) > 5


def contrasts(page, selector, name):
    """Returns the contrast of a colour of each element with what is behind.

    Args:
        page: The `Page`.
        selector: CSS selector.
        name: `"color"`, on the background of the element, or another colour
            of the style, such as of a border, on what surrounds the element.
    """
    pairs = page.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        ".map((element) => {"
        " const canvas = document.createElement('canvas');"
        " const context = canvas.getContext('2d');"
        " const paint = (color) => { context.fillStyle = color;"
        "  context.fillRect(0, 0, 1, 1);"
        "  return [...context.getImageData(0, 0, 1, 1).data]; };"
        f" const name = {json.dumps(name)};"
        " let box = name === 'color' ? element : element.parentElement;"
        " const back = (e) => getComputedStyle(e).backgroundColor;"
        " while (back(box) === 'rgba(0, 0, 0, 0)') box = box.parentElement;"
        " return [paint(back(box)), paint(getComputedStyle(element)[name])];"
        "})"
    )
    light, dark = np.sort(luminance(pairs)).T[::-1]
    return (light + 0.05) / (dark + 0.05)


def luminance(colors):
    """Relative luminance of sRGB (WCAG 2.2); the last axis is the colour."""
    part = np.array(colors)[..., :3] / 255
    linear = np.where(
        part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4
    )
    return linear @ [0.2126, 0.7152, 0.0722]


def test_a_narrow_window_scrolls_only_down(page):
    page.resize(360, 800)
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    page.resize(1200, 900)

    assert widths[0] <= widths[1]
