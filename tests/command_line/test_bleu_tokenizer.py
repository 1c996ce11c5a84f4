import pathlib
import re

import pytest
import sacrebleu

from command_line import bleu_tokenizer
from command_line.errors import UserError


@pytest.mark.parametrize(
    ("name", "tokenizer"),
    [
        ("test.ja", "ja-mecab"),
        ("train.zh.gz", "zh"),
        ("news.zh-CN", "zh"),
        ("a.pt_BR", "13a"),
        ("a.ko", "ko-mecab"),
        ("a.th", "char"),
        ("a.my", "char"),
        ("a.de", "13a"),
        ("zh", "13a"),
    ],
)
def test_the_suffix_of_a_file_names_the_language(name, tokenizer):
    language = bleu_tokenizer.language_of(pathlib.Path("folder.ja") / name)

    assert bleu_tokenizer.choose_tokenizer(language) == tokenizer
    # The first that has one of its own.
    assert bleu_tokenizer.choose_tokenizer("", "en", language, "zh") == (
        "zh" if tokenizer == "13a" else tokenizer
    )


@pytest.mark.parametrize(
    ("tokenize", "error", "message"),
    [
        ("ja-mecab", RuntimeError, r"`ja`: pip install 'keras-.*\[ja\]', or take -"),
        ("ko-mecab", ImportError, r"`ko`: .*translation\[ko\]', or take --bleu"),
        ("flores200", OSError("no network\nx"), "Received: no network$"),
        ("mecab", None, "must be one of .*13a.* Received: mecab"),
    ],
)
def test_a_tokenizer_that_is_not_there_is_refused(
    monkeypatch, tokenize, error, message
):
    class Lacking(sacrebleu.BLEU):
        def __init__(self, **_):
            raise error

    monkeypatch.setattr(sacrebleu, "BLEU", Lacking)

    with pytest.raises(UserError) as refusal:
        bleu_tokenizer.make_bleu(tokenize)

    assert re.search(message, str(refusal.value))
    assert "\n" not in str(refusal.value)
