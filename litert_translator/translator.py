"""Translates, samples and aligns texts. Axes: `S` source tokens, `T` target tokens."""

import concurrent.futures
import copy
import itertools
import json
import math
import os
import pathlib
import queue
from typing import NamedTuple

import numpy as np
import sentencepiece

from litert_translator.graphs import TURN, Model
from litert_translator.languages import find_tags
from litert_translator.option_checks import check_numbers, check_texts, complete
from litert_translator.search import length_penalty, make_draw, search

# Hypotheses times source tokens that are searched together, so that their keys and
# values stay in the processor's cache.
POSITIONS = 1024


def to_bytes(text: str | bytes) -> bytes:
    """Returns UTF-8 without characters that a tokenizer cannot take."""
    if isinstance(text, str):
        text = text.encode("utf-8", "replace")
    return text.replace(b"\0", b" ")


def decode(tokenizer, ids: list[int]) -> str:
    """Returns the text of ids, without bytes that are no whole character.

    SentencePiece would write U+FFFD for each.
    """
    text = tokenizer.decode(ids)
    if "\N{REPLACEMENT CHARACTER}" not in text:
        return text
    whole = []
    for is_byte, run in itertools.groupby(ids, tokenizer.is_byte):
        if is_byte:
            content = bytes(int(tokenizer.id_to_piece(i)[3:5], 16) for i in run)
            content = content.decode("utf-8", "ignore").encode()
            run = (tokenizer.piece_to_id(f"<0x{byte:02X}>") for byte in content)
        whole += run
    return tokenizer.decode(whole)


class Translation(NamedTuple):
    """A translation of a text.

    `score` is its log-probability over the length penalty, and `truncated` whether
    the text, or the translation, was cut at the model's limit.
    """

    text: str
    score: float
    truncated: bool


class Alignment(NamedTuple):
    """Alignment of a text with its translation, by teacher forcing.

    Attributes:
        attention: Float array `(T, S)`, the mean over the heads of one
            layer, or one head, as the decoder predicts each target token.
        log_probabilities: Float array `(T,)`, of each target token.
        score: Float, their sum over the length penalty.
        source_tokens, target_tokens: Subwords, with EOS.
        truncated: Bool, whether one of the two was cut at the model's limit.
    """

    attention: np.ndarray
    log_probabilities: np.ndarray
    score: float
    source_tokens: list[str]
    target_tokens: list[str]
    truncated: bool


def make_batches(lengths: list[int], beams: int, num_threads: int) -> list[list[int]]:
    """Returns indices of sources that are translated together, the longest first.

    Sources of about one length need little padding. Empty ones, which have EOS
    only, are left out.
    """
    order = [int(i) for i in np.argsort(lengths, kind="stable") if lengths[i] > 1]
    share = -(-len(order) // num_threads)
    batches = []
    while order:
        fit = POSITIONS // (beams * lengths[order[-1]])
        count = max(1, min(share, fit))
        batches.append(order[-count:])
        del order[-count:]
    return batches


class Translator:
    """Translates texts by beam search (Vaswani et al., 2017, Section 6.1).

    Keywords of the methods replace the export's options of the search:
    `beam_size`, `length_penalty`, `penalty_offset`, `max_extra_length`,
    `no_repeat_ngram` and `min_length`. A beam that is larger than the export's
    is slower. The methods raise a `ValueError` if an option is unknown or out of
    range, or if two lists are not equally long.

    Args:
        folder: Path of a version of an export.
        num_threads: Int, number of batches that are translated at a time.
            Each thread has a copy of the weights. `None`: as many as the CPUs
            that this process may use.

    Raises:
        FileNotFoundError: If the folder lacks its settings or a tokenizer.
    """

    def __init__(self, folder, num_threads: int | None = None):
        self._folder = pathlib.Path(folder)
        self.settings = json.loads((self._folder / "config.json").read_bytes())
        self._codes = "", ""
        self._source, self._target = (
            sentencepiece.SentencePieceProcessor(
                model_proto=(self._folder / self.settings[name]).read_bytes()
            )
            for name in ("tokenizer", "target_tokenizer")
        )
        if num_threads is None:
            has_affinity = hasattr(os, "sched_getaffinity")
            cpus = os.sched_getaffinity(0) if has_affinity else range(os.cpu_count())
            num_threads = len(cpus)
        check_numbers(num_threads=num_threads)
        self._num_threads = num_threads
        self._pool = concurrent.futures.ThreadPoolExecutor(num_threads)
        # A model for each thread, once it is needed.
        self._models = queue.LifoQueue()
        for _ in range(num_threads):
            self._models.put(None)

    def for_languages(
        self, source_language: str = "", target_language: str = ""
    ) -> "Translator":
        """Returns the translator of two languages of a model of several.

        It shares the loaded graphs. `config.json` lists the codes; a side with one
        language needs none.

        Raises:
            ValueError: If the model lacks a language.
        """
        other = copy.copy(self)
        other._codes = source_language, target_language
        _ = other._tags
        return other

    @property
    def _tags(self):
        return find_tags(self.settings["languages"], self._codes)

    def translate(self, texts: list[str], **options) -> list[Translation]:
        """Returns the best translation of each text; of an empty one `""`."""
        return [found[0] for found in self.translate_nbest(texts, 1, **options)]

    def translate_nbest(
        self,
        texts: list[str],
        num_hypotheses: int,
        prefixes: list[str] | None = None,
        **options,
    ) -> list[list[Translation]]:
        """Returns the best translations of each text, best first.

        Args:
            texts: Sentences.
            num_hypotheses: Int, at most the size of the beam.
            prefixes: What the translation of each text begins with.
            **options: Options of the search.
        """
        options = complete(options, self.settings["search"], num_hypotheses)
        prefixes = [""] * len(texts) if prefixes is None else prefixes
        check_texts(texts=texts, prefixes=prefixes)
        prefixes = [self._target.encode(to_bytes(prefix)) for prefix in prefixes]
        return self._find(texts, num_hypotheses, options, prefixes)

    def sample(
        self,
        texts: list[str],
        seeds: list[int],
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        **options,
    ) -> list[Translation]:
        """Samples a translation of each text, token by token.

        A sample depends on the text, its seed and the options only.

        Args:
            texts: Sentences.
            seeds: Int of at least 0 for each text.
            temperature: Positive float, the divisor of the logits.
            top_k: Samples among so many most probable tokens; 0: among all.
            top_p: Float in (0, 1]. Samples among the fewest most probable
                tokens that have this total probability.
            **options: Options of the search.
        """
        options = complete({**options, "beam_size": 1}, self.settings["search"], 1)
        check_texts(texts=texts, seeds=seeds)
        check_numbers(top_k=top_k)
        if not (0 < temperature < math.inf and 0 < top_p <= 1):
            raise ValueError(
                "`temperature` must be positive and finite, and `top_p` above 0 and "
                f"at most 1. Received: {temperature=}, {top_p=}"
            )
        draws = [make_draw(seed, temperature, top_k, top_p) for seed in seeds]
        found = self._find(texts, 1, options, [()] * len(texts), draws)
        return [best for (best,) in found]

    def align(self, sources: list[str], targets: list[str]) -> list[Alignment]:
        """Aligns texts with their translations, and scores these."""
        check_texts(sources=sources, targets=targets)
        n, m = map(len, self._tags)

        def find(model, pair):
            source_ids, source_cut = self.encode_source(pair[0])
            target_ids, target_cut = self._encode(self._target, pair[1], self._tags[1])
            model.start([source_ids], 1)
            attention, log_probabilities = [], []
            inputs = [self.settings["bos_id"], *target_ids[:-1]]
            for last, token in zip(inputs, target_ids, strict=True):
                model.step(last)
                attention.append(model.output("attention")[0, 0, : len(source_ids)])
                log_probabilities.append(model.log_probabilities()[0, 0, token])
                model.reorder(np.array([[0]]))
            penalty = length_penalty(len(target_ids), self.settings["search"])
            return Alignment(
                np.array(attention)[m:, n:],
                np.array(log_probabilities)[m:],
                float(np.sum(log_probabilities[m:]) / penalty),
                self._source.id_to_piece(source_ids[n:]),
                self._target.id_to_piece(target_ids[m:]),
                source_cut or target_cut,
            )

        return self._run(find, [*zip(sources, targets, strict=True)])

    def encode_source(self, text: str) -> tuple[list[int], bool]:
        """Returns the ids of a text with EOS, and whether they were cut."""
        return self._encode(self._source, text, self._tags[0])

    def _encode(self, tokenizer, text, tags):
        limit = self.settings["max_source_length"] - len(tags)
        ids = tokenizer.encode(to_bytes(text))
        return [*tags, *ids[: limit - 1], self.settings["eos_id"]], len(ids) >= limit

    def _run(self, find, parts):
        """Returns `find(model, part)` of each part, several at a time."""

        def find_one(part):
            model = self._models.get()
            try:
                model = model or Model(self._folder, self.settings)
                with TURN:
                    return find(model, part)
            finally:
                self._models.put(model)

        if len(parts) == 1:  # Another thread would start later.
            return [find_one(parts[0])]
        return [*self._pool.map(find_one, parts)]

    def _find(self, texts, num_hypotheses, options, prefixes, draws=None):
        """Returns the best translations of each text."""
        encoded = [self.encode_source(text) for text in texts]
        found = [[Translation("", 0.0, False)] for _ in texts]
        before, forced = self._tags
        options = {**options, "unscored_prefix": len(forced)}

        def find(model, part):
            rows = search(
                model,
                [encoded[i][0] for i in part],
                [[*forced, *prefixes[i]] for i in part],
                num_hypotheses,
                options,
                draws and [draws[i] for i in part],
            )
            for i, row in zip(part, rows, strict=True):
                found[i] = [
                    Translation(
                        decode(self._target, ids[len(forced) :]),
                        float(score),
                        cut or encoded[i][1],
                    )
                    for ids, score, cut in row
                ]

        lengths = [len(ids) - len(before) for ids, _ in encoded]
        self._run(find, make_batches(lengths, options["beam_size"], self._num_threads))
        return found
