"""Runs the search of this package for `benchmarks.decoding`."""

import pathlib
from collections.abc import Callable

import keras
import tensorflow as tf

from export.bundle.model_loading import with_dtype
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.tensorflow.graph_transformer import search_in_graph
from keras_transformer.special_ids import PADDING_ID

IDS = tf.TensorSpec([None, None], tf.int32)
LENGTHS = tf.TensorSpec([None], tf.int32)


def make(
    folder: pathlib.Path, beam_size: int, precision: str
) -> Callable[[dict], list[list[int]]]:
    transformer = load_transformer(folder, precision)
    # As an export has it.
    kernel = tf.Variable(tf.transpose(transformer.embedding_of_logits.embeddings))
    options = SearchOptions(beam_size, num_hypotheses=1)

    @tf.function(input_signature=[IDS, LENGTHS], autograph=False)
    def search(source_ids, max_lengths):
        found = search_in_graph(
            transformer, source_ids, max_lengths, options, output_kernel=kernel
        )
        return found.ids[:, 0]

    def translate(batch):
        source_ids = pad(batch["source_ids"])
        lengths = tf.fill([len(source_ids)], batch["length"])
        return strip(search(source_ids, lengths))

    return translate


def make_trained(
    folder: pathlib.Path, beam_size: int, precision: str
) -> Callable[[dict], list[str]]:
    import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

    loaded = tf.saved_model.load(str(folder / f"package-{precision}"))
    name = "translate_greedy" if beam_size == 1 else "serving_default"
    signature = loaded.signatures[name]

    def translate(batch):
        found = signature(text=tf.constant(batch["texts"]))
        return [text.decode() for text in found["translation"].numpy()]

    translate.keep_alive = loaded  # The signature does not hold its weights.
    return translate


def load_transformer(folder: pathlib.Path, precision: str):
    path = folder / "run" / "model.keras"
    return with_dtype(keras.saving.load_model(path, compile=False), precision)


def pad(rows: list[list[int]]) -> tf.Tensor:
    return tf.ragged.constant(rows, tf.int32).to_tensor(PADDING_ID)


def strip(ids: tf.Tensor) -> list[list[int]]:
    """Returns rows of ids without their padding."""
    return [row[row != PADDING_ID].tolist() for row in ids.numpy()]
