"""Makes the weights and batches that all systems of the benchmark share.

It runs in a separate process: the memory of a process counts towards the peak
of the processes that it starts, and TensorFlow must not count towards
CTranslate2's.
"""

import argparse
import dataclasses
import importlib.util
import io
import itertools
import json
import pathlib
import random

import keras
import numpy as np
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from benchmarks.decoding.worker import LITERT, TRAINED_SYSTEMS, WARM_UP_CASE
from benchmarks.shared.model_sizes import (
    BEAM_SIZE,
    BOS_ID,
    CURVE_BATCH_SIZE,
    CURVE_LENGTH,
    DECODED_SIZES,
    EOS_ID,
    LENGTH_PENALTY,
    MAX_EXTRA_LENGTH,
    PADDING_ID,
    Size,
)
from command_line.errors import UserError, exit_on_user_error
from export.bundle.model_loading import load_run, read_run
from export.ctranslate2.model_directory import write_ctranslate2
from export.litert.model_directory import write_litert
from export.model.search import SearchSettings
from keras_transformer import Transformer
from keras_transformer.tokenizer import UNKNOWN_ID
from train.data.corpus import Corpus, FilePairs, demo_pairs
from train.data.vocabulary import explain_sentencepiece_error

RESERVED_IDS = [PADDING_ID, EOS_ID, BOS_ID]
WARM_UP_SENTENCES = 3


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoding.inputs")
    add = parser.add_argument
    path = {"type": pathlib.Path}
    add("--folder", **path, required=True)
    add("--size", choices=DECODED_SIZES)
    add("--vocabulary-size", type=int)
    add("--run-dir", **path)
    add("--systems", nargs="+")
    add("--source", **path)
    add("--reference", **path)
    add("--sentences", type=int)
    add("--batch-sizes", type=int, nargs="+")
    add("--curve-lengths", type=int, nargs="*")
    add("--curve-batch-sizes", type=int, nargs="*")
    return parser.parse_args(argv)


def make_transformer(size: Size) -> Transformer:
    keras.utils.set_random_seed(0)
    transformer = Transformer.from_preset(
        "base", size.vocabulary_size, **size.hyperparameters()
    )
    suppress_eos(transformer)
    return transformer


def suppress_eos(transformer: Transformer) -> None:
    """Makes every hypothesis as long as its limit.

    The last normalization adds 20 to the first feature, which affects only the
    logits of the reserved ids: they are near -10. All other logits are those of
    a random model.
    """
    last = transformer.decoder.layers[-1].feed_forward_residual.normalization
    first = np.arange(transformer.architecture.hidden_dim) == 0
    last.beta.assign(20.0 * first)
    table = transformer.embedding.embeddings.numpy()
    table[:, 0] = 0.0
    table[RESERVED_IDS] = -0.5 * first
    transformer.embedding.embeddings.assign(table)


def learn_tokenizer(corpus: Corpus, vocabulary_size: int) -> bytes:
    """Learns as many pieces as the text supports; unused ones fill up.

    So the vocabulary of every system has the size that is asked for.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain.from_iterable(corpus),
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
        raise UserError(
            explain_sentencepiece_error(str(error), vocabulary_size)
        ) from None
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    for index in range(len(proto.pieces), vocabulary_size):
        piece = proto.pieces.add()
        piece.piece, piece.score = f"<unused_{index}>", -1e9
        piece.type = piece.UNUSED
    return proto.SerializeToString()


def encode(
    tokenizer: sentencepiece.SentencePieceProcessor, corpus: Corpus
) -> list[tuple[list[int], list[int]]]:
    """Returns the ids of all sources and targets, with EOS."""
    return [tuple(tokenizer.encode(list(pair), add_eos=True)) for pair in corpus]


def choose_batches(
    order: list[int], batch_size: int, sentences: int
) -> list[list[int]]:
    """Chooses batches of neighbours, evenly over all sentences.

    Args:
        order: Sentences by their length.
        batch_size: Int, sentences of a batch.
        sentences: Int, about how many in all.

    Returns:
        Parts of `order`, in an order of chance, as requests come.
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


def make_forced_batch(pairs: list[tuple[list[int], list[int]]]) -> dict:
    """Makes a batch that is decoded for as long as its longest target."""
    length = max(len(target) for _, target in pairs)
    return {
        "source_ids": [source for source, _ in pairs],
        "length": length,
        "tokens": length * len(pairs),
    }


def make_natural_batch(
    texts: list[str], pairs: list[tuple[list[int], list[int]]]
) -> dict:
    """Makes a batch of text; its tokens are those of the references."""
    return {"texts": texts, "tokens": sum(len(target) for _, target in pairs)}


def make_random_batch(vocabulary_size: int, batch_size: int, length: int) -> dict:
    """Makes one batch of `length` random tokens, to be decoded for as many."""
    generator = np.random.default_rng(0)
    ids = generator.integers(4, vocabulary_size, (batch_size, length))
    ids[:, -1] = EOS_ID
    return {"source_ids": ids.tolist(), "length": length, "tokens": batch_size * length}


def make_curves(args: argparse.Namespace) -> dict[str, list[dict]]:
    """Makes a case of one batch for each point of both curves."""
    points = [
        *((CURVE_BATCH_SIZE, length) for length in args.curve_lengths),
        *((size, CURVE_LENGTH) for size in args.curve_batch_sizes),
    ]
    return {
        f"{batch_size} x {length}": [
            make_random_batch(args.vocabulary_size, batch_size, length)
        ]
        for batch_size, length in points
    }


def write_random_run(args: argparse.Namespace, corpus: Corpus) -> pathlib.Path:
    """Writes the run folder of a model that was never trained."""
    size = dataclasses.replace(
        DECODED_SIZES[args.size], vocabulary_size=args.vocabulary_size
    )
    folder = args.folder / "run"
    folder.mkdir()
    make_transformer(size).save(folder / "model.keras")
    proto = learn_tokenizer(corpus, args.vocabulary_size)
    (folder / "tokenizer.model").write_bytes(proto)
    (args.folder / "size.json").write_text(json.dumps(vars(size)))
    return folder


def write_exports(args: argparse.Namespace, run_dir: pathlib.Path) -> None:
    """Writes what the systems load, each where it is installed."""
    settings = SearchSettings(BEAM_SIZE, LENGTH_PENALTY, MAX_EXTRA_LENGTH)
    if args.run_dir:
        write_saved_models(args, settings)
    asked = any(name.startswith("ctranslate2") for name in args.systems)
    if asked and importlib.util.find_spec("ctranslate2"):
        folder = args.folder / "ctranslate2"
        write_ctranslate2(*read_run(run_dir), settings, "float32", folder)
    for name in args.systems:
        if name in LITERT:
            beam_size, precision = LITERT[name]
            write_litert(
                *read_run(run_dir),
                dataclasses.replace(settings, beam_size=beam_size),
                precision,
                args.folder / name,
            )


def write_saved_models(args: argparse.Namespace, settings: SearchSettings) -> None:
    """Writes the exports that the systems load."""
    options = [TRAINED_SYSTEMS[system][1] for system in args.systems]
    for name in dict.fromkeys(o["export"] for o in options if "export" in o):
        translator = load_run(
            args.run_dir, settings, "bfloat16" if "bfloat16" in name else "float32"
        )
        tf.saved_model.save(
            translator, str(args.folder / name), signatures=translator.signatures
        )


def make_cases(
    args: argparse.Namespace, corpus: Corpus, run_dir: pathlib.Path
) -> dict[str, list[dict]]:
    """Returns lists of batches by the name of their case."""
    tokenizer = sentencepiece.SentencePieceProcessor(
        model_file=str(run_dir / "tokenizer.model")
    )
    texts = [source for source, _ in corpus]
    pairs = encode(tokenizer, corpus)
    lengths = [(len(target), len(source)) for source, target in pairs]
    order = sorted(range(len(pairs)), key=lambda i: lengths[i])

    def make_batch(places):
        chosen = [pairs[i] for i in places]
        if args.run_dir:
            return make_natural_batch([texts[i] for i in places], chosen)
        return make_forced_batch(chosen)

    cases = {WARM_UP_CASE: [make_batch(order[:WARM_UP_SENTENCES])]}
    for batch_size in args.batch_sizes:
        chosen = choose_batches(order, batch_size, args.sentences)
        cases[f"batch {batch_size}"] = [make_batch(part) for part in chosen]
    return cases if args.run_dir else {**cases, **make_curves(args)}


def run(args: argparse.Namespace) -> None:
    corpus = demo_pairs("test" if args.run_dir else "train")
    if args.source:
        corpus = FilePairs(args.source, args.reference)
    run_dir = args.run_dir or write_random_run(args, corpus)
    write_exports(args, run_dir)
    cases = make_cases(args, corpus, run_dir)
    (args.folder / "cases.json").write_text(json.dumps(cases))


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_arguments(argv))


if __name__ == "__main__":
    main()
