"""This package's search, for `benchmarks.decoding`."""

import pathlib
from collections.abc import Callable

import keras
import tensorflow as tf

from benchmarks.shared.sizes import BEAM_SIZE
from benchmarks.shared.sizes import MAX_EXTRA_LENGTH
from export.bundle.saved_model import with_dtype
from keras_transformer.masks import PADDING_ID
from keras_transformer.search.graph_transformer import graph_search_translations
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.translation import search_translations

IDS = tf.TensorSpec([None, None], tf.int32)
LENGTHS = tf.TensorSpec([None], tf.int32)


def make(
    folder: pathlib.Path,
    beam_size: int = BEAM_SIZE,
    precision: str = "float32",
    xla: bool = False,
) -> Callable[[dict], list[list[int]]]:
    """Returns a function from a batch of ids to those of its translations."""
    transformer = with_dtype(load_transformer(folder), precision)
    # As an export has it.
    kernel = tf.Variable(tf.transpose(transformer.embedding.embeddings))

    @tf.function(
        input_signature=[IDS, LENGTHS], autograph=False, jit_compile=xla
    )
    def search(source_ids, max_lengths):
        options = SearchOptions(beam_size, num_hypotheses=1)
        if not xla:
            found = graph_search_translations(
                transformer,
                source_ids,
                max_lengths,
                options,
                output_kernel=kernel,
            )
            return found.ids[:, 0]
        # As `Search` does for XLA.
        found = search_translations(
            transformer,
            source_ids,
            max_lengths,
            options,
            max_length=tf.shape(source_ids)[1] + MAX_EXTRA_LENGTH,
            output_kernel=kernel,
        )
        return found.ids[:, 0]

    def translate(batch):
        source_ids = pad(batch["source_ids"])
        size = len(source_ids)
        if xla:
            source_ids = pad_to_powers(source_ids)
        real = tf.range(len(source_ids)) < size
        lengths = tf.where(real, batch["length"], 1)
        return strip(search(source_ids, lengths)[:size])

    return translate


def make_served(
    folder: pathlib.Path, export: str, greedy: bool = False
) -> Callable[[dict], list[str]]:
    """Returns a function from a batch of texts to their translations."""
    import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

    loaded = tf.saved_model.load(str(folder / export))
    name = "translate_greedy" if greedy else "serving_default"
    signature = loaded.signatures[name]

    def translate(batch):
        found = signature(text=tf.constant(batch["texts"]))
        return [text.decode() for text in found["translation"].numpy()]

    translate.keep_alive = loaded  # The signature does not hold its weights.
    return translate


def load_transformer(folder: pathlib.Path):
    path = folder / "run" / "model.keras"
    return keras.saving.load_model(path, compile=False)


def pad(rows: list[list[int]]) -> tf.Tensor:
    return tf.ragged.constant(rows, tf.int32).to_tensor(PADDING_ID)


def pad_to_powers(ids: tf.Tensor) -> tf.Tensor:
    """Pads rows and columns to powers of two: each shape is compiled anew."""
    rows, length = (1 << (n - 1).bit_length() for n in ids.shape)
    return tf.pad(ids, [[0, rows - ids.shape[0]], [0, length - ids.shape[1]]])


def strip(ids: tf.Tensor) -> list[list[int]]:
    """Returns rows of ids without their padding."""
    return [row[row != PADDING_ID].tolist() for row in ids.numpy()]
