"""Chooses sacreBLEU's tokenizer for the language of a test set."""

import pathlib
import re

from command_line.errors import UserError, first_line
from command_line.launcher import install_command

HELP = (
    "sacreBLEU's name of what cuts text into tokens for BLEU (default: by the "
    "target language, which a set or the suffix of a file names: zh, ja-mecab, "
    "ko-mecab, char for th, lo, km and my, else 13a)"
)
DEFAULT = "13a"
# Languages without blanks between words, or with words that 13a does not split.
BY_LANGUAGE = {
    "zh": "zh",
    "ja": "ja-mecab",
    "ko": "ko-mecab",
    **dict.fromkeys(("th", "lo", "km", "my"), "char"),
}
EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}


def language_of(path: pathlib.Path) -> str:
    """Returns the suffix that may name a language: `ja` for `test.ja.gz`."""
    name = path.name.removesuffix(".gz")
    return pathlib.PurePath(name).suffix.removeprefix(".")


def choose_tokenizer(*languages: str) -> str:
    """Returns the tokenizer of the first language that needs a special one."""
    for language in languages:
        code = re.split("[-_]", language.lower())[0]
        if code in BY_LANGUAGE:
            return BY_LANGUAGE[code]
    return DEFAULT


def make_bleu(tokenize: str, **options: bool):
    """Makes a `sacrebleu.BLEU` with a tokenizer and other options.

    Raises:
        UserError: If there is no such tokenizer, or if it lacks a package or a file.
    """
    import sacrebleu  # Choosing a name does not need the package.

    if tokenize not in sacrebleu.BLEU.TOKENIZERS:
        raise UserError(
            f"--bleu-tokenize must be one of "
            f"{', '.join(sacrebleu.BLEU.TOKENIZERS)}. Received: {tokenize}"
        )
    try:
        return sacrebleu.BLEU(tokenize=tokenize, **options)
    except (ImportError, OSError, RuntimeError) as error:
        if tokenize in EXTRAS:
            raise UserError(
                f"BLEU's tokenizer {tokenize} needs the extra `{EXTRAS[tokenize]}`: "
                f"{install_command(EXTRAS[tokenize])}, or take --bleu-tokenize char"
            ) from None
        raise UserError(
            f"BLEU's tokenizer {tokenize} must be there, which sacreBLEU "
            f"downloads. Received: {first_line(error)}"
        ) from None
