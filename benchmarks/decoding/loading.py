"""Settings, models, texts and workers, for the functions that load systems."""

import concurrent.futures
import pathlib
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.constants import BEAM_SIZE, EOS_ID, PADDING_ID
from benchmarks.interleaved_runs import NotMeasuredError, Threads


class Setting(NamedTuple):
    """What a system loads, and how.

    `folder` is that of `inputs.py`, or an export, or a model of Firefox.
    """

    folder: pathlib.Path
    threads: Threads = Threads()
    beam_size: int = BEAM_SIZE
    precision: str = "float32"


Translate = Callable[[dict], list[str]]
Ids = list[list[int]]


def load_transformer(setting: Setting):
    import keras

    from export.bundle.run_loading import with_dtype

    path = setting.folder / "run/model.keras"
    return with_dtype(keras.saving.load_model(path, compile=False), setting.precision)


def load_tokenizer(setting: Setting):
    import sentencepiece

    path = str(setting.folder / "run/tokenizer.model")
    return sentencepiece.SentencePieceProcessor(model_file=path, num_threads=1)


def with_tokenizer(setting: Setting, find_ids: Callable[[Ids, dict], Ids]) -> Translate:
    """Returns a function of texts, of one from ids to ids."""
    from litert_translator.translator import decode

    tokenizer = load_tokenizer(setting)

    def translate(batch):
        rows = tokenizer.encode(batch["texts"], add_eos=True)
        found = cut_ends(find_ids(rows, batch), batch["length"])
        return [decode(tokenizer, ids) for ids in found]

    return translate


def cut_ends(rows: Ids, length: int | None) -> Ids:
    """Returns ids without EOS, which some systems return, or without the last.

    Where all have a given `length`, this package ends with EOS, and the other
    systems with another token.
    """
    if length is None:
        return [[i for i in ids if i != EOS_ID] for ids in rows]
    for ids in rows:
        if len(ids) != length:
            raise NotMeasuredError(f"decoded {len(ids)} tokens instead of {length}")
    return [ids[:-1] for ids in rows]


def pad(rows: list[list[int]]):
    import tensorflow as tf

    return tf.ragged.constant(rows, tf.int32).to_tensor(PADDING_ID)


def strip(ids) -> list[list[int]]:
    """Returns rows of ids without their padding."""
    return [row[row != PADDING_ID].tolist() for row in ids.numpy()]


def in_parts(setting: Setting, translate: Translate) -> Translate:
    """Returns a function that translates a part of a batch with each worker."""
    workers, _ = setting.threads
    if workers == 1:
        return translate
    pool = concurrent.futures.ThreadPoolExecutor(workers)

    def translate_parts(batch):
        texts = batch["texts"]
        count = min(workers, len(texts))
        parts = [{**batch, "texts": texts[i::count]} for i in range(count)]
        found = [None] * len(texts)
        for i, part in enumerate(pool.map(translate, parts)):
            found[i::count] = part
        return found

    return translate_parts
