"""Runs CTranslate2 with the weights of this package."""

import json
import os
import pathlib
from collections.abc import Callable

import ctranslate2
import sentencepiece

from benchmarks.shared.model_sizes import BEAM_SIZE, LENGTH_PENALTY, MAX_EXTRA_LENGTH

MODEL_DIR = "ctranslate2/1"


def make(
    folder: pathlib.Path, beam_size: int = BEAM_SIZE, compute_type: str = "float32"
) -> Callable[[dict], list[list[int]]]:
    """Returns a function from a batch of ids to those of its translations."""
    search = load(folder, beam_size, compute_type)
    vocabulary = (folder / MODEL_DIR / "shared_vocabulary.json").read_text()
    pieces = json.loads(vocabulary)
    ids = {piece: i for i, piece in enumerate(pieces)}

    def translate(batch):
        length = batch["length"]
        found = search(
            [[pieces[i] for i in row] for row in batch["source_ids"]],
            min_decoding_length=length,
            max_decoding_length=length,
        )
        return [[ids[piece] for piece in row] for row in found]

    return translate


def make_trained(
    folder: pathlib.Path, beam_size: int = BEAM_SIZE, compute_type: str = "float32"
) -> Callable[[dict], list[str]]:
    """Returns a function from a batch of texts to their translations."""
    search = load(folder, beam_size, compute_type)
    tokenizer = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / MODEL_DIR / "tokenizer.model")
    )

    def translate(batch):
        rows = tokenizer.encode(batch["texts"], out_type=str, add_eos=True)
        limit = max(map(len, rows)) + MAX_EXTRA_LENGTH
        return tokenizer.decode(search(rows, max_decoding_length=limit))

    return translate


def load(
    folder: pathlib.Path, beam_size: int, compute_type: str
) -> Callable[..., list[list[str]]]:
    """Returns a function from sources to the best translations, in tokens."""
    translator = ctranslate2.Translator(
        str(folder / MODEL_DIR),
        device="cpu",
        compute_type=compute_type,
        inter_threads=1,
        intra_threads=int(os.environ["OMP_NUM_THREADS"]),
    )

    def search(rows, **limits):
        results = translator.translate_batch(
            rows, beam_size=beam_size, length_penalty=LENGTH_PENALTY, **limits
        )
        return [result.hypotheses[0] for result in results]

    return search
