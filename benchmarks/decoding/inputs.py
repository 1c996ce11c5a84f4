"""Makes the weights and batches that all systems of `benchmarks.decoding` share.

It runs in a separate process: the memory of a process counts towards the peak
of the processes that it starts, and TensorFlow must not count towards
CTranslate2's.
"""

import dataclasses
import importlib.util
import itertools
import json
import pathlib
import random
import sys

import keras
import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from benchmarks.constants import LENGTH_PENALTY, MAX_EXTRA_LENGTH, SIZES, STUDENTS, Size
from benchmarks.decoding.systems import SYSTEMS
from benchmarks.decoding.worker import WARM_UP_CASE
from command_line.errors import UserError, exit_on_user_error
from command_line.text_files import read_lines
from export.bundle.run_loading import read_run
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


def choose_batches(groups: list[Ids], batch_size: int, sentences: int) -> list[Ids]:
    """Chooses batches of neighbours in a group, evenly from first to last group.

    They have about `sentences` sentences, in an order of chance, as requests
    come.
    """
    batches = [
        group[start : start + batch_size]
        for group in groups
        for start in range(0, len(group) - batch_size + 1, batch_size)
    ]
    if not batches:
        raise UserError(
            "--batch-sizes must not exceed the number of sentences; for --sizes, of "
            "those with equally many subwords. "
            f"Received: {batch_size}, and {max(map(len, groups))} sentences"
        )
    count = min(len(batches), max(1, sentences // batch_size))
    chosen = [
        batches[int((place + 0.5) / count * len(batches))] for place in range(count)
    ]
    return random.Random(0).sample(chosen, count)


def make_cases(
    texts: list[str],
    sources: list[int],
    targets: list[int],
    is_random: bool,
    options: dict,
) -> dict[str, list[dict]]:
    """Returns lists of batches by the name of their case.

    For each size there are a case to measure and one for probes. `sources` are the
    lengths of the texts, and `targets` what each counts. A random model decodes each
    sentence of a batch, whose sources are equally long, for as long as the longest
    target.
    """
    order = sorted(range(len(texts)), key=lambda i: (sources[i], targets[i]))
    groups = [order]
    if is_random:
        groups = [list(of) for _, of in itertools.groupby(order, sources.__getitem__)]

    def make_batch(batch: Ids) -> dict:
        counts = [targets[i] for i in batch]
        found = {"texts": [texts[i] for i in batch]}
        if not is_random:
            limits = {"length": None, "extra_length": MAX_EXTRA_LENGTH}
            return {**found, **limits, "count": sum(counts)}
        length = max(counts)
        limits = {"length": length, "extra_length": length - sources[batch[0]]}
        return {**found, **limits, "count": length * len(batch)}

    cases = {WARM_UP_CASE: [make_batch(groups[0][:WARM_UP_SENTENCES])]}
    for batch_size in options["batch_sizes"]:
        batches = choose_batches(groups, batch_size, options["sentences"])
        measured = [make_batch(batch) for batch in batches]
        cases[f"batch {batch_size}"] = measured
        cases[f"probe {batch_size}"] = measured[: max(1, len(measured) // 4)]
    return cases


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


def make_model_cases(folder: pathlib.Path, options: dict) -> dict[str, list[dict]]:
    """Writes the models of the systems, and returns cases that count tokens."""
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
    path = str(folder / "run/tokenizer.model")
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=path, add_eos=True)
    texts, references = map(list, zip(*pairs, strict=True))
    sources, targets = (
        [len(ids) for ids in tokenizer.encode(side)] for side in (texts, references)
    )
    return make_cases(texts, sources, targets, not is_trained, options)


def make_export_cases(options: dict) -> dict[str, list[dict]]:
    """Returns cases for exports that are there already; they count sentences."""
    texts = list(read_lines(pathlib.Path(options["source"])))
    return make_cases(texts, list(map(len, texts)), [1] * len(texts), False, options)


def run(options: dict) -> None:
    folder = pathlib.Path(options["folder"])
    if options["model"]:
        cases = make_model_cases(folder, options)
    else:
        cases = make_export_cases(options)
    (folder / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    with exit_on_user_error():
        run(json.loads(sys.argv[1]))
