"""Makes the weights and batches that all systems of the benchmark share.

It runs in a separate process: the memory of a process counts towards the peak
of the processes that it starts, and TensorFlow must not count towards
CTranslate2's.
"""

import dataclasses
import importlib.util
import io
import itertools
import json
import pathlib
import random
import sys

import keras
import numpy as np
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from benchmarks.decoding.worker import SYSTEMS, WARM_UP_CASE
from benchmarks.shared.model_sizes import (
    BEAM_SIZE,
    LENGTH_PENALTY,
    MAX_EXTRA_LENGTH,
    SIZES,
    STUDENTS,
    Size,
)
from command_line.errors import UserError, exit_on_user_error
from export.bundle.model_loading import load_run, read_run
from export.ctranslate2.model_directory import write_ctranslate2
from export.litert.model_directory import write_litert
from export.model.search import SearchSettings
from keras_transformer import Transformer
from keras_transformer.special_ids import BOS_ID, EOS_ID, PADDING_ID, UNKNOWN_ID
from train.data.corpus import FilePairs, demo_pairs
from train.data.vocabulary import explain_sentencepiece_error

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
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain.from_iterable(pairs),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocabulary_size,
            hard_vocab_limit=False,
            byte_fallback=True,
            pad_id=PADDING_ID,
            eos_id=EOS_ID,
            unk_id=UNKNOWN_ID,
            bos_id=BOS_ID,
            minloglevel=2,
        )
    except RuntimeError as error:
        message = explain_sentencepiece_error(str(error), vocabulary_size)
        raise UserError(message) from None
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
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


def make_batch(texts: list[str], pairs: list[tuple[Ids, Ids]]) -> dict:
    """Makes a batch for a trained model, or for a random one without texts.

    A trained model gets texts, and its tokens are those of the references. A
    random model decodes each sentence for as long as the longest target.
    """
    lengths = [len(target) for _, target in pairs]
    if texts:
        return {"texts": texts, "tokens": sum(lengths)}
    return {
        "source_ids": [source for source, _ in pairs],
        "length": max(lengths),
        "tokens": max(lengths) * len(pairs),
    }


def make_cases(
    pairs: list[tuple[str, str]], proto: bytes, options: dict
) -> dict[str, list[dict]]:
    """Returns lists of batches by the name of their case."""
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=proto)
    ids = [tuple(tokenizer.encode(list(pair), add_eos=True)) for pair in pairs]
    lengths = [(len(target), len(source)) for source, target in ids]
    order = sorted(range(len(ids)), key=lambda i: lengths[i])
    chosen = {WARM_UP_CASE: [order[:WARM_UP_SENTENCES]]}
    for batch_size in options["batch_sizes"]:
        batches = choose_batches(order, batch_size, options["sentences"])
        chosen[f"batch {batch_size}"] = batches
    return {
        case: [
            make_batch(
                [pairs[i][0] for i in batch] if options["run_dir"] else [],
                [ids[i] for i in batch],
            )
            for batch in batches
        ]
        for case, batches in chosen.items()
    }


def write_random_run(
    folder: pathlib.Path, pairs: list[tuple[str, str]], options: dict
) -> pathlib.Path:
    """Writes the run folder of a model that was never trained."""
    vocabulary_size = options["vocabulary_size"]
    size = dataclasses.replace(
        {**SIZES, **STUDENTS}[options["size"]], vocabulary_size=vocabulary_size
    )
    run_dir = folder / "run"
    run_dir.mkdir()
    make_transformer(size).save(run_dir / "model.keras")
    proto = learn_tokenizer(pairs, vocabulary_size)
    (run_dir / "tokenizer.model").write_bytes(proto)
    (folder / "size.json").write_text(json.dumps(vars(size)))
    return run_dir


def write_exports(
    folder: pathlib.Path, run_dir: pathlib.Path, systems: list[str], is_trained: bool
) -> None:
    """Writes what the systems load, each where it is installed."""
    settings = SearchSettings(BEAM_SIZE, LENGTH_PENALTY, MAX_EXTRA_LENGTH)
    for module, beam_size, precision in {SYSTEMS[system] for system in systems}:
        if module == "litert":
            path = folder / f"litert-{precision}-{beam_size}"
            search = dataclasses.replace(settings, beam_size=beam_size)
            write_litert(*read_run(run_dir), search, precision, path)
        path = folder / f"{module}-{precision}"
        if module == "package" and is_trained and not path.exists():
            export = load_run(run_dir, settings, precision)
            tf.saved_model.save(export, str(path), signatures=export.signatures)
    asked = any(SYSTEMS[system][0] == "ctranslate2" for system in systems)
    if asked and importlib.util.find_spec("ctranslate2"):
        path = folder / "ctranslate2"
        write_ctranslate2(*read_run(run_dir), settings, "float32", path)


def run(options: dict) -> None:
    folder = pathlib.Path(options["folder"])
    run_dir = options["run_dir"] and pathlib.Path(options["run_dir"])
    corpus = demo_pairs("test" if run_dir else "train")
    if options["source"]:
        paths = options["source"], options["reference"]
        corpus = FilePairs(*map(pathlib.Path, paths))
    pairs = list(corpus)
    is_trained = bool(run_dir)
    run_dir = run_dir or write_random_run(folder, pairs, options)
    write_exports(folder, run_dir, options["systems"], is_trained)
    proto = (run_dir / "tokenizer.model").read_bytes()
    cases = make_cases(pairs, proto, options)
    (folder / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    with exit_on_user_error():
        run(json.loads(sys.argv[1]))
