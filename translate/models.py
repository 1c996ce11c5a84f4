"""Model of a language pair: an export in this process, or a TF Serving."""

import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from command_line.cpu_count import count_processors
from command_line.errors import UserError
from documents.markup.word_alignment import word_attention
from export.bundle.model_loading import SIGNATURE
from translate.report.explanation_page import describe_translation, render
from translate.runtime.tf_serving import ClientOptions, connect
from translate.runtime.version_loading import find_export, load_version, read_defaults
from translate.sentence_translator import align_batch, knows_placeholders
from translate.translator_loading import DOCUMENT
from translate.word_confidence import group_words

# Optional features, and the signatures that each needs.
MARKUP = "markup"
ALTERNATIVES, WORDS, REPORT = "alternatives", "words", "report"
SIGNATURES_OF_FEATURE = {
    MARKUP: ("align",),
    ALTERNATIVES: ("translate_nbest",),
    WORDS: ("align", "score"),
    REPORT: ("align", "explain", "explain_beam"),
}
PROBE = ["a"]


class Translation(NamedTuple):
    """A translated sentence."""

    text: str
    truncated: bool  # Whether the sentence or its translation was cut.


class Model:
    """A model and its methods, each of which takes a batch.

    Args:
        translate: Function from a list of UTF-8 to the dict of outputs of the
            signature that translates.
        ask: Function from the name of a signature and a dict of arrays to the
            dict of its outputs, as arrays.
        features: Names of `SIGNATURES_OF_FEATURE` that the model supports.
        in_flight: Int, number of concurrent batches.

    Attributes:
        knows_placeholders: Bool, whether the model was trained with
            `PLACEHOLDERS`; known after `probe`, if it aligns.
    """

    def __init__(
        self,
        translate: Callable,
        ask: Callable | None = None,
        features: tuple[str, ...] = (),
        in_flight: int = 1,
    ):
        self._translate, self._ask = translate, ask
        self.features, self.in_flight = features, in_flight
        self.knows_placeholders = False

    def translate(self, texts: list[str]) -> list[Translation]:
        """Translates sentences."""
        outputs = self._translate([text.encode() for text in texts])
        return [
            Translation(decode_line(text), bool(cut))
            for text, cut in zip(
                outputs["translation"].numpy(),
                outputs["truncated"].numpy(),
                strict=True,
            )
        ]

    def align(self, pairs: list[tuple[str, str]]) -> list[np.ndarray]:
        """Returns the word alignments of sentences and their translations.

        See `word_attention`.
        """
        sources, targets = map(list, zip(*pairs, strict=True))
        found = align_batch(self._align, sources, targets)
        return [
            word_attention(attention, source, source_pieces, target, pieces)
            for (source, target), (attention, source_pieces, pieces) in zip(
                pairs, found, strict=True
            )
        ]

    def _align(self, source, target):
        found = self._ask("align", {"source": source, "target": target})
        return {name: tf.constant(value) for name, value in found.items()}

    def find_alternatives(self, texts: list[str], beam_size: int) -> list[list[str]]:
        """Returns the best translations of each sentence, best first.

        Those that were cut are left out, unless the best one was cut, too.
        """
        outputs = self._ask(
            "translate_nbest",
            {"text": strings(texts), "beam_size": np.int32(beam_size)},
        )
        return [
            [decode_line(text) for text in row[valid & (~was_cut | was_cut[0])]]
            for row, valid, was_cut in zip(
                *(outputs[n] for n in ("translation", "valid", "truncated")),
                strict=True,
            )
        ]

    def find_words(self, pairs: list[tuple[str, str]]) -> list[dict]:
        """Returns the words of sentences and of their translations.

        See `group_words`.
        """
        sources, targets = zip(*pairs, strict=True)
        inputs = {"source": strings(sources), "target": strings(targets)}
        aligned = self._ask("align", inputs)
        scored = self._ask("score", inputs)
        return [
            group_words(*row)
            for row in zip(
                aligned["source_tokens"],
                aligned["target_tokens"],
                aligned["attention"],
                scored["token_log_probabilities"],
                strict=True,
            )
        ]

    def write_reports(self, texts: list[str]) -> list[str]:
        """Returns the HTML report of `translate.explain` for each sentence."""

        def ask(name, **given):
            inputs = {key: np.array([text], object) for key, text in given.items()}
            return {k: v[0] for k, v in self._ask(name, inputs).items()}

        return [render(describe_translation(ask, text.encode())) for text in texts]

    def probe(self) -> None:
        """Calls each method once, since the first call is slow."""
        self.translate(PROBE)
        if MARKUP in self.features:
            self.align([(PROBE[0], PROBE[0])])
            self.knows_placeholders = knows_placeholders(self._align)
        if ALTERNATIVES in self.features:
            self.find_alternatives(PROBE, 2)
        if WORDS in self.features:
            self.find_words([(PROBE[0], PROBE[0])])
        if REPORT in self.features:
            self.write_reports(PROBE)


def load_model(export_dir: pathlib.Path) -> Model:
    """Loads the newest version of an export.

    Raises:
        UserError: If there is no version, or it is damaged.
    """
    folder = find_export(export_dir)
    loaded = load_version(folder)
    defaults = read_defaults(folder)

    def ask(name, inputs):
        given = {key: tf.constant(value) for key, value in inputs.items()}
        given = {**defaults.get(name, {}), **given}
        outputs = loaded.signatures[name](**given)
        return {key: value.numpy() for key, value in outputs.items()}

    # This signature handles sentences in capitals, and long ones.
    signature = loaded.signatures.get(DOCUMENT, loaded.signatures[SIGNATURE])

    def translate(texts):
        return signature(text=tf.constant(texts))

    features = tuple(
        name
        for name, needed in SIGNATURES_OF_FEATURE.items()
        if all(signature in loaded.signatures for signature in needed)
    )
    model = Model(translate, ask, features, count_batches())
    model.probe()
    return model


def count_batches() -> int:
    """Returns how many batches a model in this process translates at a time.

    One for each thread of TensorFlow, and at least two: one is for short
    requests.
    """
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    return max(2, threads or count_processors())


def connect_model(server: str, options: ClientOptions) -> Model:
    """Returns the model of a running TF Serving.

    Args:
        server: Its address, `HOST:PORT` or a URL.
        options: Options of the client.

    Raises:
        UserError: If the server does not answer, or has another model.
    """
    client = connect(server, options)

    def ask(name, inputs):
        outputs = client.ask(name, inputs)
        return {key: value.numpy() for key, value in outputs.items()}

    def translate(texts):
        return client.ask(DOCUMENT, {"text": np.array(texts, object)})

    # TF Serving has no list of signatures: call each one.
    if not responds(Model(translate)):
        translate = client
        Model(translate).probe()
    features = tuple(
        name
        for name in SIGNATURES_OF_FEATURE
        if responds(Model(translate, ask, (name,)))
    )
    model = Model(translate, ask, features, options.in_flight)
    model.probe()
    return model


def responds(model: Model) -> bool:
    """Returns whether a model answers the requests that it is made for."""
    try:
        model.probe()
    except UserError:
        return False
    return True


def strings(texts) -> np.ndarray:
    return np.array([text.encode() for text in texts], object)


def decode_line(text: bytes) -> str:
    # A model may generate line ends; a sentence has none.
    return " ".join(text.decode("utf-8", "replace").splitlines())
