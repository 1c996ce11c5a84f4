"""Options of the vocabulary of a run, and what they exclude."""

import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable

import sentencepiece

from command_line.errors import UserError
from command_line.options import flag, option
from command_line.text_files import read_lines
from text_processing.placeholders import PLACEHOLDERS
from train.data.corpus import Corpus, refuse_pipe
from train.data.encoded_corpus import cached_vocabulary
from train.data.tokenizer_file import SPECIAL, read_tokenizer

FILE = {"kind": pathlib.Path, "metavar": "FILE", "tags": ("digested",)}


@dataclasses.dataclass(frozen=True)
class VocabularyOptions:
    """How text is split into subwords."""

    tokenizer: pathlib.Path | None = option(
        None,
        "a SentencePiece model (bpe or unigram) instead of one that is learned",
        **FILE,
    )
    symbols: pathlib.Path | None = option(
        None,
        "texts that are one subword each of the vocabulary that is learned, "
        "such as the tag <2es>, one a line; ▁ stands for a blank",
        **FILE,
    )

    def digests(self) -> dict[str, str]:
        """Returns the SHA-256 of what the files hold, as hexadecimal.

        Raises:
            UserError: If one is missing or invalid.
        """
        contents = {}
        if self.tokenizer is not None:
            contents["tokenizer"] = read_tokenizer(self.tokenizer)
        if self.symbols is not None:
            contents["symbols"] = "\n".join(read_symbols(self.symbols)).encode()
        return {
            name: hashlib.sha256(content).hexdigest()
            for name, content in contents.items()
        }


def check_vocabulary(
    given: VocabularyOptions,
    vocabulary_size: int | None,
    init_from: pathlib.Path | None,
    parsing: bool,
) -> bytes | None:
    """Refuses options that exclude each other.

    Args:
        given: The options.
        vocabulary_size: Value of `--vocabulary-size`.
        init_from: Value of `--init-from`.
        parsing: Whether the task is parsing.

    Returns:
        The model of `--tokenizer`, or `None` without one.

    Raises:
        UserError: If options exclude each other, or as `read_tokenizer`.
    """
    names = [f.name for f in dataclasses.fields(given)]
    asked = [flag(n) for n in names if getattr(given, n) is not None]
    if init_from and asked:
        raise UserError(
            "--init-from keeps its vocabulary; --extend-vocabulary adds "
            f"subwords. Received: --init-from {init_from} and "
            f"{', '.join(asked)}"
        )
    if given.tokenizer is None:
        return None
    if parsing or len(asked) > 1:
        others = ["--task parsing"] if parsing else asked[1:]
        raise UserError(
            "--tokenizer takes the place of a vocabulary that is learned, with "
            f"its symbols. Received: --tokenizer and {', '.join(others)}"
        )
    proto = read_tokenizer(given.tokenizer)
    size = count_pieces(proto)
    if vocabulary_size not in (None, size):
        raise UserError(
            f"--vocabulary-size must be that of --tokenizer, {size} subwords. "
            f"Received: --vocabulary-size {vocabulary_size}"
        )
    return proto


def count_pieces(proto: bytes) -> int:
    model = sentencepiece.SentencePieceProcessor(model_proto=proto)
    return model.get_piece_size()


def check_placeholders(
    protos: Iterable[bytes], wanted: str, path: pathlib.Path
) -> None:
    """Refuses `--placeholders` with a vocabulary that lacks them.

    Args:
        protos: The SentencePiece models.
        wanted: The option that they come from, and what would add subwords.
        path: Value of that option.
    """
    for proto in protos:
        pieces = sentencepiece.SentencePieceProcessor(model_proto=proto)
        missing = [
            piece
            for piece in PLACEHOLDERS
            if pieces.piece_to_id(piece) == pieces.unk_id()
        ]
        if missing:
            raise UserError(
                "--placeholders must be those of the vocabulary of "
                f"{wanted}. Received: {path} without {', '.join(missing)}"
            )


def make_vocabulary(
    given: VocabularyOptions, corpus: Corpus, size: int, cache: pathlib.Path
) -> bytes:
    """Returns the model of `--tokenizer`, or the one that is learned.

    Args:
        given: The options.
        corpus: The training corpus.
        size: Int, subwords in all of a vocabulary that is learned.
        cache: Folder of vocabularies.
    """
    if given.tokenizer is not None:
        return read_tokenizer(given.tokenizer)
    symbols = read_symbols(given.symbols) if given.symbols else []
    return cached_vocabulary(corpus, size, cache, symbols)


def read_symbols(path: pathlib.Path) -> list[str]:
    """Reads the symbols of a file, one a line.

    Raises:
        UserError: If a line is not valid as a symbol.
    """
    refuse_pipe(path)
    symbols = list(read_lines(path))
    check_pieces(symbols, "--symbols", path)
    special = {name for name, _ in SPECIAL.values()}
    for number, symbol in enumerate(symbols, 1):
        if symbol in special:
            raise invalid_line_error(
                "--symbols", path, number, "no special subword", symbol
            )
    return symbols


def check_pieces(pieces: list[str], option_name: str, path: pathlib.Path) -> None:
    """Refuses lines that are not valid as new subwords.

    Args:
        pieces: The lines.
        option_name: The option that names the file, such as `"--symbols"`.
        path: The file.
    """
    seen = set()
    for number, piece in enumerate(pieces, 1):
        where = option_name, path, number
        if not piece or piece.split() != [piece]:
            raise invalid_line_error(*where, "a subword; ▁ stands for a blank", piece)
        if piece in seen:
            raise invalid_line_error(*where, "another subword than those before", piece)
        seen.add(piece)


def invalid_line_error(
    option_name: str, path: pathlib.Path, number: int, wanted: str, piece: str
) -> UserError:
    return UserError(
        f"line {number} of {option_name} {path} must be {wanted}. Received: {piece!r}"
    )
