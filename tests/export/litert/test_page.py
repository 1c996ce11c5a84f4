"""The page that translates in a browser, beside `litert_translator`."""

import json
import random
import subprocess

import pytest

import litert_translator
from export import page as page_command
from export.bundle.model_loading import read_run
from export.litert.model_directory import write_litert
from export.model.search import SearchSettings
from tests.helpers import chromium, service_client
from tests.helpers.allowed_skips import PEER_REASON
from tests.helpers.ctranslate2_models import MODELS, make_model
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.static_server import serve_folder

TRAINED, GREEDY = "of the run", "greedy"
CHANGES = {
    name: MODELS[name]
    for name in (
        "pre-norm, d_k < d_v, gelu",
        "padded vocabulary, narrow heads",
        "of other systems",
    )
}
CHANGES["ssru"] = {"decoder_mixer": "ssru"}
OPTIONS = [
    {"beam_size": 1},
    {},
    {"beam_size": 5},
    {"no_repeat_ngram": 2, "min_length": 6},
    {"max_extra_length": 40},  # More positions than there is room for at first.
]


def random_texts():
    """Returns 50 texts of the words of `SENTENCES`, and odd ones."""
    draw = random.Random(2)
    words = " ".join(SENTENCES).split()
    texts = [" ".join(draw.choices(words, k=draw.randrange(1, 12))) for _ in range(44)]
    return [*texts, "", "  ", "a\0b", "ﬁ\u3000ｆｕｌｌ 🐈‍⬛", "\ufeffA", "word" * 40]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npm")
    package = f"{page_command.PACKAGE}@{page_command.PACKAGE_VERSION}"
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--prefix", folder, package],
        capture_output=True,
    )
    if done.returncode:
        pytest.skip(f"{PEER_REASON}npm")
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.browse(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def opened(request, run_dir, packages, browser, tmp_path):
    """The page of a model, in a browser, and the model's `Translator`."""
    trained, protos = read_run(run_dir)
    name, precision = request.param
    model = make_model(**CHANGES[name]) if name in CHANGES else trained
    settings = SearchSettings(1 if name == GREEDY else 3, max_extra_length=8)
    folder = write_litert(model, protos, settings, precision, tmp_path / "export")
    page_command.main(
        [
            *("--export-dir", str(tmp_path / "export")),
            *("--page-dir", str(tmp_path / "page")),
            *("--npm-dir", str(packages)),
        ]
    )
    with serve_folder(tmp_path / "page") as address:
        browser.complaints.clear()
        browser.requests.clear()
        browser.open(address)
        wait(browser, "!document.getElementById('translate').disabled")
        yield browser, litert_translator.Translator(folder, num_threads=1)


def wait(page, expression):
    service_client.wait_until(lambda: page.evaluate(expression))


def translate_in(page, texts, options):
    """Returns what `translator.js` finds."""
    return page.evaluate(
        f"""(async () => {{
            const {{ Translator }} = await import("./translator.js");
            window.loaded ??= await Translator.load("model/");
            const found = [];
            for (const text of {json.dumps(texts)}) {{
                found.push(await loaded.translate(text, {json.dumps(options)}));
            }}
            return found;
        }})()"""
    )


@pytest.mark.peers("chromium", "npm")
@pytest.mark.parametrize(
    "opened",
    [*[(name, "float32") for name in (TRAINED, *CHANGES)], (GREEDY, "int8")],
    indirect=True,
    ids=lambda parameter: ", ".join(parameter),
)
def test_finds_what_the_python_module_finds(opened):
    page, translator = opened
    texts = random_texts()
    is_int8 = translator.settings["precision"] == "int8"
    for options in OPTIONS:
        found = translate_in(page, texts, options)
        pairs = [*zip(found, translator.translate(texts, **options), strict=True)]
        same = [pair for pair in pairs if pair[0]["text"] == pair[1].text]
        # Rounding decides about ties; in int8 each processor has its own.
        assert len(texts) - len(same) <= (10 if is_int8 else 1)
        for result, expected in same:
            assert result["truncated"] == expected.truncated
            assert is_int8 or (
                result["score"] == pytest.approx(expected.score, abs=1e-3)
            )


@pytest.mark.peers("chromium", "npm")
@pytest.mark.parametrize("opened", [(TRAINED, "float32")], indirect=True)
def test_a_user_translates_lines_and_no_other_server_is_asked(opened):
    page, translator = opened
    page.evaluate("document.getElementById('text').focus()")
    page.call("Input.insertText", text="\n".join(SENTENCES[:3]))
    page.click("#translate")
    wait(page, "!document.getElementById('translate').disabled")
    output = page.evaluate("document.getElementById('output').textContent")

    expected = translator.translate(SENTENCES[:3])
    assert output.split("\n") == [found.text for found in expected]
    origin = page.evaluate("location.origin + '/'")
    assert len(page.requests) > 10
    assert not [url for url in page.requests if not url.startswith(origin)]
    assert not [one for one in page.complaints if "exceptionDetails" in one]


def test_refuses_in_one_line(refused, tmp_path):
    def refusal(page_dir):
        options = ("--export-dir", tmp_path, "--page-dir", page_dir)
        return refused(page_command, *options, "--npm-dir", tmp_path)

    new = tmp_path / "page"
    assert "that `python -m export --format litert` wrote" in refusal(new)
    (tmp_path / "1").mkdir()
    (tmp_path / "1/step.tflite").touch()
    command = f"`npm install --prefix {tmp_path} @litertjs/core@2.5.3` ran"
    assert f"{command}. Received: no such package" in refusal(new)
    package = tmp_path / "node_modules/@litertjs/core/package.json"
    package.parent.mkdir(parents=True)
    package.write_text('{"version": "2.5.2"}')
    assert f"{command}. Received: 2.5.2" in refusal(new)
    package.write_text('{"version": "2.5.3"}')
    line = refusal(tmp_path)
    assert f"--page-dir must be a new folder. Received: {tmp_path}" in line
