"""Runs CTranslate2 with the weights of this package."""

import os
import pathlib
from collections.abc import Callable

import ctranslate2
import sentencepiece

from benchmarks.shared.model_sizes import LENGTH_PENALTY, MAX_EXTRA_LENGTH


def make(
    folder: pathlib.Path, beam_size: int, precision: str
) -> Callable[[dict], list[list[int]]]:
    search, tokenizer = load(folder, beam_size, precision)

    def translate(batch):
        length = batch["length"]
        found = search(
            [tokenizer.id_to_piece(row) for row in batch["source_ids"]],
            min_decoding_length=length,
            max_decoding_length=length,
        )
        return [tokenizer.piece_to_id(row) for row in found]

    return translate


def make_trained(
    folder: pathlib.Path, beam_size: int, precision: str
) -> Callable[[dict], list[str]]:
    search, tokenizer = load(folder, beam_size, precision)

    def translate(batch):
        rows = tokenizer.encode(batch["texts"], out_type=str, add_eos=True)
        limit = max(map(len, rows)) + MAX_EXTRA_LENGTH
        return tokenizer.decode(search(rows, max_decoding_length=limit))

    return translate


def load(
    folder: pathlib.Path, beam_size: int, precision: str
) -> tuple[Callable[..., list[list[str]]], sentencepiece.SentencePieceProcessor]:
    """Returns a function from sources to translations, in tokens; a tokenizer."""
    model_dir = folder / "ctranslate2/1"
    translator = ctranslate2.Translator(
        str(model_dir),
        device="cpu",
        compute_type=precision,
        inter_threads=1,
        intra_threads=int(os.environ["OMP_NUM_THREADS"]),
    )

    def search(rows, **limits):
        results = translator.translate_batch(
            rows, beam_size=beam_size, length_penalty=LENGTH_PENALTY, **limits
        )
        return [result.hypotheses[0] for result in results]

    path = str(model_dir / "tokenizer.model")
    return search, sentencepiece.SentencePieceProcessor(model_file=path)
