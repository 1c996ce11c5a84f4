"""The tokenizer of the page, beside the sentencepiece library."""

import io
import json
import random

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from export import page as page_command
from tests.helpers import chromium
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.static_server import serve_folder

pytestmark = pytest.mark.peers("chromium")
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
MODELS = {
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
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*SENTENCES * 9, *ODD * 3]),
        model_writer=model,
        vocab_size=380 if options.get("byte_fallback") else 110,
        character_coverage=0.98,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": 3, **options},
    )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
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


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with (
        serve_folder(page_command.SOURCES) as address,
        chromium.browse(tmp_path_factory.mktemp("profile")) as page,
    ):
        page.open(f"{address}sentencepiece.js")
        yield page


@pytest.mark.parametrize("name", MODELS)
def test_encodes_and_decodes_as_the_library(browser, name):
    proto = learn(MODELS[name], unused="unused" in name)
    library = sentencepiece.SentencePieceProcessor(model_proto=proto)
    texts = odd_texts(600)
    ids = library.encode(texts)
    draw = random.Random(4)
    ids += [draw.choices(range(len(library)), k=draw.randrange(12)) for _ in range(600)]
    found = browser.evaluate(
        f"""(async () => {{
            const {{ SentencePiece }} = await import("./sentencepiece.js");
            const bytes = new Uint8Array({list(proto)});
            const model = new SentencePiece(bytes);
            return [{json.dumps(texts)}.map((text) => model.encode(text)),
                {json.dumps(ids)}.map((ids) => model.decode(ids))];
        }})()"""
    )

    assert found[0] == ids[: len(texts)]
    assert found[1] == library.decode(ids)


def test_refuses_another_type_of_model(browser):
    proto = learn({"model_type": "char"}, unused=False)
    message = browser.evaluate(
        f"""import("./sentencepiece.js").then(({{ SentencePiece }}) =>
            new SentencePiece(new Uint8Array({list(proto)}))).catch(String)"""
    )
    assert message == (
        "Error: A tokenizer must be a byte-pair encoding or a unigram model."
    )
