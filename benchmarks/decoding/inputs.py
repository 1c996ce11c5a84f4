"""Makes the weights and batches that all systems of `benchmarks.decoding` share.

It runs in a separate process: the memory of a process counts towards the peak
of the processes that it starts, and TensorFlow must not count towards
CTranslate2's.
"""

import dataclasses
import importlib.util
import json
import pathlib
import random
import sys
from collections.abc import Callable

import keras
import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from benchmarks.decoding.systems import SYSTEMS
from benchmarks.decoding.worker import WARM_UP_CASE
from benchmarks.model_sizes import (
    LENGTH_PENALTY,
    MAX_EXTRA_LENGTH,
    SIZES,
    STUDENTS,
    Size,
)
from command_line.errors import UserError, exit_on_user_error
from command_line.text_files import read_lines
from export.bundle.model_loading import read_run
from export.ctranslate2.model_directory import write_ctranslate2
from export.litert.model_directory import write_litert
from export.model.search import SearchSettings
from keras_transformer import Transformer
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID
from train.data.corpus import FilePairs, Pairs, demo_pairs
from train.data.vocabulary import VocabularySizeError, learn_vocabulary

WARM_UP_SENTENCES = 3
Ids = list[int]


def make_transformer(size: Size) -> Transformer:
    """Makes a random model, every hypothesis of which is as long as its limit.

    The last normalization adds 20 to the first feature, which affects only the
    logits of the reserved ids: they are near -10. All other logits are those of
    a random model.
    """
    keras.utils.set_random_seed(0)
    transformer = Transformer.from_preset(
        "base", size.vocabulary_size, **size.hyperparameters()
    )
    last = transformer.decoder.layers[-1].feed_forward_residual.normalization
    first = np.arange(size.hidden_dim) == 0
    last.beta.assign(20.0 * first)
    table = transformer.embedding.embeddings.numpy()
    table[:, 0] = 0.0
    table[[PADDING_ID, EOS_ID, BOS_ID]] = -0.5 * first
    transformer.embedding.embeddings.assign(table)
    return transformer


def learn_tokenizer(pairs: list[tuple[str, str]], vocabulary_size: int) -> bytes:
    """Learns as many pieces as the text supports; unused ones fill up.

    So the vocabulary of every system has the size that is asked for.
    """
    corpus = Pairs(*map(list, zip(*pairs, strict=True)))
    try:
        model = learn_vocabulary(corpus, vocabulary_size)
    except VocabularySizeError as error:
        if error.nearest > vocabulary_size:
            raise
        model = learn_vocabulary(corpus, error.nearest)
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    for index in range(len(proto.pieces), vocabulary_size):
        piece = proto.pieces.add()
        piece.piece, piece.score = f"<unused_{index}>", -1e9
        piece.type = piece.UNUSED
    return proto.SerializeToString()


def choose_batches(order: Ids, batch_size: int, sentences: int) -> list[Ids]:
    """Chooses batches of neighbours in `order`, evenly from its start to its end.

    They have about `sentences` sentences, in an order of chance, as requests
    come.
    """
    batches = [
        order[start : start + batch_size]
        for start in range(0, len(order) - batch_size + 1, batch_size)
    ]
    if not batches:
        raise UserError(
            "--batch-sizes must not exceed the number of sentences. "
            f"Received: {batch_size}, and {len(order)} sentences"
        )
    count = min(len(batches), max(1, sentences // batch_size))
    chosen = [
        batches[int((place + 0.5) / count * len(batches))] for place in range(count)
    ]
    return random.Random(0).sample(chosen, count)


def make_cases(
    lengths: list, make_batch: Callable[[list[int]], dict], options: dict
) -> dict[str, list[dict]]:
    """Returns lists of batches by the name of their case.

    `make_batch` makes one of the sentences with these indices.
    """
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    cases = {WARM_UP_CASE: [make_batch(order[:WARM_UP_SENTENCES])]}
    for batch_size in options["batch_sizes"]:
        batches = choose_batches(order, batch_size, options["sentences"])
        cases[f"batch {batch_size}"] = [make_batch(batch) for batch in batches]
    return cases


def make_text_cases(options: dict) -> dict[str, list[dict]]:
    """Makes batches of texts for exports, each sentence of which counts as 1."""
    texts = list(read_lines(pathlib.Path(options["source"])))

    def make_batch(batch: list[int]) -> dict:
        return {"texts": [texts[i] for i in batch], "count": len(batch)}

    return make_cases(list(map(len, texts)), make_batch, options)


def make_id_cases(
    pairs: list[tuple[str, str]], proto: bytes, is_trained: bool, options: dict
) -> dict[str, list[dict]]:
    """Makes batches of ids, which count the tokens of the references.

    A random model decodes each sentence for as long as the longest target, and
    counts these.
    """
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=proto)
    ids = [tuple(tokenizer.encode(list(pair), add_eos=True)) for pair in pairs]

    def make_batch(batch: list[int]) -> dict:
        lengths = [len(ids[i][1]) for i in batch]
        length = None if is_trained else max(lengths)
        count = sum(lengths) if is_trained else length * len(batch)
        sources = [ids[i][0] for i in batch]
        return {"source_ids": sources, "length": length, "count": count}

    lengths = [(len(target), len(source)) for source, target in ids]
    return make_cases(lengths, make_batch, options)


def write_random_run(
    folder: pathlib.Path, pairs: list[tuple[str, str]], options: dict
) -> None:
    """Writes the run folder of a model that was never trained."""
    vocabulary_size = options["vocabulary_size"]
    size = dataclasses.replace(
        {**SIZES, **STUDENTS}[options["model"]], vocabulary_size=vocabulary_size
    )
    run_dir = folder / "run"
    run_dir.mkdir()
    make_transformer(size).save(run_dir / "model.keras")
    proto = learn_tokenizer(pairs, vocabulary_size)
    (run_dir / "tokenizer.model").write_bytes(proto)
    (folder / "size.json").write_text(json.dumps(vars(size)))


def write_exports(folder: pathlib.Path, systems: list[str]) -> None:
    """Writes what the systems load, each where it is installed."""
    model = read_run(folder / "run")
    for system in systems:
        _, beam_size, precision = SYSTEMS[system]
        settings = SearchSettings(beam_size, LENGTH_PENALTY, MAX_EXTRA_LENGTH)
        if system.startswith("litert"):
            path = folder / f"litert-{precision}-{beam_size}"
            write_litert(*model, settings, precision, path)
        path = folder / "ctranslate2"
        is_there = path.exists() or not importlib.util.find_spec("ctranslate2")
        if system.startswith("ctranslate2") and not is_there:
            write_ctranslate2(*model, settings, "float32", path)


def make_ids(folder: pathlib.Path, options: dict) -> dict[str, list[dict]]:
    """Writes the models of the systems, and returns cases of ids."""
    is_trained = options["run_dir"] is not None
    corpus = demo_pairs("test" if is_trained else "train")
    if options["source"]:
        paths = options["source"], options["reference"]
        corpus = FilePairs(*map(pathlib.Path, paths))
    pairs = list(corpus)
    if is_trained:
        (folder / "run").symlink_to(options["run_dir"])
    else:
        write_random_run(folder, pairs, options)
    write_exports(folder, options["systems"])
    proto = (folder / "run/tokenizer.model").read_bytes()
    return make_id_cases(pairs, proto, is_trained, options)


def run(options: dict) -> None:
    folder = pathlib.Path(options["folder"])
    cases = make_ids(folder, options) if options["model"] else make_text_cases(options)
    (folder / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    with exit_on_user_error():
        run(json.loads(sys.argv[1]))
