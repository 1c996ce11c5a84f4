"""Writes the warm-up requests that TF Serving sends when it loads a version.

Without them, the first users wait while TensorFlow optimizes the graph. The
server handles them like requests of users; if one fails, it does not serve the
version.
"""

import itertools
import pathlib
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from export.bundle.predict_messages import make_request, serialize
from export.bundle.server_config import WARMUP_BATCH_SIZES

SENTENCE_TOKENS = 8  # In tokens, with EOS; less if the model's limit is lower.
# These are called rarely, and warming them up delays the server's start.
NOT_WARMED_UP = ("align", "explain", "explain_beam", "sample")
MAX_RECORDS = 1000  # The server refuses more.
FIRST_ORDINARY_ID = 4  # The ids of padding, EOS, unknown and BOS come first.


def make_sentence(tokenizer, num_tokens: int) -> str:
    """Makes a sentence of so many tokens with EOS, if there are words of one token.

    SentencePiece orders its pieces as it learned them, the most frequent first;
    words of three letters or more come first here. The words reveal no more of
    the training text than the tokenizer, which is part of the SavedModel.
    """
    ids = range(FIRST_ORDINARY_ID, min(tokenizer.source_vocabulary_size, 2000))
    pieces = tokenizer.source_id_to_piece(tf.constant([*ids])).numpy()
    texts = [piece.decode().replace("▁", " ").strip() for piece in pieces]
    words = [*dict.fromkeys(text for text in texts if text.isalpha())] or ["."]
    lengths = tokenizer.tokenize(words).row_lengths().numpy() - 1
    short = [word for word, n in zip(words, lengths, strict=True) if n == 1]
    chosen = sorted(short or words, key=lambda word: len(word) < 3)
    return " ".join(itertools.islice(itertools.cycle(chosen), num_tokens - 1))


def choose_sentences(samples: list[dict], tokenizer) -> list[str]:
    """Returns the sources of the samples; if there are none, made ones."""
    lengths = SENTENCE_TOKENS, SENTENCE_TOKENS // 2
    made = [make_sentence(tokenizer, length) for length in lengths]
    return [sample["source"] for sample in samples] or made


def make_inputs(signature, sentences: list[str], translator) -> dict:
    """Makes the inputs of a `SignatureDef` for sentences: arrays by name.

    An option has one value for each sentence, that of the translator's settings;
    sentences have all languages in turn.
    """
    settings = translator.settings
    text = np.array([sentence.encode() for sentence in sentences], object)
    values = {
        "text": text,
        "source": text,
        "target": text,
        "prefix": np.full(text.shape, b"", object),
        "length_penalty": np.full(text.shape, settings.length_penalty, np.float32),
        "max_extra_length": np.full(text.shape, settings.max_extra_length, np.int32),
    }
    if translator.languages:
        rows = [translator.languages.example_inputs(i) for i in range(len(sentences))]
        for name in rows[0]:
            codes = [row[name].encode() for row in rows]
            values[name] = np.array(codes, object)
    return {name: values[name] for name in signature.inputs}


def make_requests(signatures, translator, model_name: str) -> Iterator:
    """Yields the warm-up requests for `SignatureDef`s by name.

    The first request of a signature is slow, because TensorFlow optimizes the
    graph. A new batch size or length costs little. So the default signature
    gets a request for each batch size, and each other signature one request.
    Signatures with an input without a batch axis get none: with
    --enable_batching the server refuses them and would not load the version.
    """
    length = min(SENTENCE_TOKENS, translator.sequence_length)
    sentence = make_sentence(translator.tokenizer, length)
    for name, signature in signatures.items():
        can_batch = all(tensor.tensor_shape.dim for tensor in signature.inputs.values())
        if name in NOT_WARMED_UP or not can_batch:
            continue
        for size in WARMUP_BATCH_SIZES if name == "serving_default" else (1,):
            inputs = make_inputs(signature, [sentence] * size, translator)
            yield make_request(model_name, name, inputs)


def write_warmup(path: pathlib.Path, requests: Iterable) -> None:
    """Writes requests as the TFRecord file that the server looks for."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for request in requests:
            log = PredictionLog()
            log.predict_log.request.CopyFrom(request)
            writer.write(serialize(log))


def read_warmup(path: pathlib.Path) -> Iterator:
    """Yields the requests of a warm-up file."""
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        yield PredictionLog.FromString(record).predict_log.request
