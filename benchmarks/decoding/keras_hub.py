"""Runs keras-hub's beam search on the model of this package."""

import pathlib
from collections.abc import Callable

import keras_hub
import tensorflow as tf

from benchmarks.decoding.package import IDS, load_transformer, pad, strip
from benchmarks.shared.model_sizes import BOS_ID
from keras_transformer.layers.cache import DecoderCache, FixedCache
from keras_transformer.masks import padding_mask


def make(
    folder: pathlib.Path, beam_size: int, precision: str
) -> Callable[[dict], list[list[int]]]:
    """Returns a function from a batch of ids to those of its translations.

    As keras-hub's own encoder-decoder models do it: the cache has a place for
    every position, and the memory's keys and values stay outside of it. So
    does its length: the sampler repeats what it is given for each beam. A
    CPU gets no XLA: `jit_compile="auto"`, Keras's default.
    """
    transformer = load_transformer(folder, precision)
    sampler = keras_hub.samplers.BeamSampler(num_beams=beam_size)

    @tf.function(input_signature=[IDS, tf.TensorSpec([], tf.int32)])
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

    return lambda batch: strip(
        search(pad(batch["source_ids"]), tf.constant(batch["length"]))
    )
