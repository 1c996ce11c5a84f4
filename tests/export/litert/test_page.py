"""The page that translates in a browser, beside Python and sentencepiece."""

import contextlib
import functools
import http.server
import json
import random
import subprocess
import threading

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

import litert_translator
from export import browser_page as page_command
from export.bundle.run_loading import read_run
from export.litert.model_directory import write_litert
from export.model.search import SearchSettings
from litert_translator.translator import decode
from tests.helpers import chromium, service_client
from tests.helpers.allowed_skips import PEER_REASON
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.other_systems.converted_runs import train_spm
from tests.helpers.other_systems.ctranslate2_models import MODELS, make_model

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


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serve_folder(folder):
    """Gives the address of a folder, which ends with a slash."""
    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def random_texts():
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
    assert "--export-dir must be a folder that `python -m export`" in refusal(new)
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


SYMBOLS = ["<b>", "</b>", "⟦1⟧", "▁of▁", "ca", "cat"]
ODD = [
    "ÀÉÎõü ﬁancé Ⅳ ①②③ ｆｕｌｌ　ｗｉｄｔｈ",
    "日本語の文章です。漢字とかな",
    "😀😃 👩‍👩‍👧 🇪🇸 e\u0301\u0302 \u202eright",
    "العربية كتابة 한국어 ㄱㅏ",
    "|---|---|---|---| ``` ====",  # Many paths of equal scores.
]
BPE = {"model_type": "bpe", "byte_fallback": True}
UNIGRAM = {"model_type": "unigram", "byte_fallback": True}
KEPT = {"remove_extra_whitespaces": False}
TOKENIZERS = {
    "bpe": BPE,
    "bpe, symbols": {**BPE, "user_defined_symbols": SYMBOLS},
    "bpe, no bytes": {"model_type": "bpe"},
    "bpe, identity": {**BPE, **KEPT, "normalization_rule_name": "identity"},
    "bpe, no prefix": {**BPE, **KEPT, "add_dummy_prefix": False},
    "bpe, folded": {**BPE, "normalization_rule_name": "nfkc_cf"},
    "bpe, unused": BPE,
    "unigram": UNIGRAM,
    "unigram, symbols": {**UNIGRAM, "user_defined_symbols": SYMBOLS},
    "unigram, no bytes": {"model_type": "unigram", **KEPT},
    "unigram, unused": UNIGRAM,
}


def learn(options, unused):
    """Returns a SentencePiece model; pieces may be marked as unused."""
    size = 380 if options.get("byte_fallback") else 110
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": 3}
    lines = [*SENTENCES * 3, *ODD]
    trained = train_spm(lines, size, character_coverage=0.98, **ids, **options)
    proto = sentencepiece_model_pb2.ModelProto.FromString(trained)
    if unused:
        for piece in proto.pieces[4::3]:
            if piece.type == piece.NORMAL:
                piece.type = piece.UNUSED
        proto.trainer_spec.unk_surface = "?!"
    return proto.SerializeToString()


def odd_texts(count):
    draw = random.Random(3)
    spaces = [" ", "  ", "\t", "\u3000", "\u00a0", "\u200b", "\n", "▁", "▁▁"]
    parts = [*SYMBOLS, *spaces, "<unk>", "<s>", "<0x41>", "⁇", "¨", "\u0301"]

    def part():
        kind = draw.randrange(4)
        if kind == 0:
            sentence = draw.choice([*SENTENCES, *ODD])
            start = draw.randrange(len(sentence))
            return sentence[start : start + draw.randrange(1, 20)]
        if kind == 1:
            return draw.choice(parts)
        last = (0x80, 0xD800, 0x110000)[draw.randrange(3)]
        character = chr(draw.randrange(1, last))
        return "" if 0xD800 <= ord(character) < 0xE000 else character

    texts = ["".join(part() for _ in range(draw.randrange(20)))]
    while len(texts) < count:
        texts.append("".join(part() for _ in range(draw.randrange(20))))
    return [*texts, "", " ", "▁", "\u200b", "word" * 500]


@pytest.fixture
def sources(browser):
    with serve_folder(page_command.SOURCES) as address:
        browser.open(f"{address}sentencepiece.js")
        yield browser


@pytest.mark.peers("chromium")
@pytest.mark.parametrize("name", TOKENIZERS)
def test_encodes_and_decodes_as_the_library(sources, name):
    proto = learn(TOKENIZERS[name], unused="unused" in name)
    library = sentencepiece.SentencePieceProcessor(model_proto=proto)
    texts = odd_texts(600)
    ids = library.encode(texts)
    draw = random.Random(4)
    ids += [draw.choices(range(len(library)), k=draw.randrange(12)) for _ in range(600)]
    found = sources.evaluate(
        f"""(async () => {{
            const {{ SentencePiece }} = await import("./sentencepiece.js");
            const bytes = new Uint8Array({list(proto)});
            const model = new SentencePiece(bytes);
            return [{json.dumps(texts)}.map((text) => model.encode(text)),
                {json.dumps(ids)}.map((ids) => model.decode(ids))];
        }})()"""
    )

    assert found[0] == ids[: len(texts)]
    assert found[1] == [decode(library, row) for row in ids]
