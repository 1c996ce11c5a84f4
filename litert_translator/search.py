"""Beam search of several sentences at once (Section 6.1), with NumPy.

Its rules are those of `keras_transformer.beam_search`: the authors' `2 K`
candidates, the length penalty, and a stop that never changes the result.

Axes: `B` sentences, `K` hypotheses of a sentence, `C` candidates, `V` vocabulary.
"""

import bisect
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from litert_translator.graphs import Model


class Hypothesis(NamedTuple):
    """Ids with EOS, their score, and whether they were cut."""

    ids: list[int]
    score: float
    truncated: bool


def search(
    model: Model,
    sources: Sequence[list[int]],
    prefixes: Sequence[list[int]],
    num_hypotheses: int,
    options: dict,
    draws: Sequence[Callable] | None = None,
) -> list[list[Hypothesis]]:
    """Returns the best hypotheses of each source, best first.

    Each step takes the best `2 K` continuations of a sentence. Those that end
    become finished hypotheses, and the best `K` of the others stay active. The
    search of a sentence ends when no active hypothesis can become one of its
    best `num_hypotheses`.

    `sources` are ids with EOS, `prefixes` the first ids of the translations, and
    `options` all options of the search, with `unscored_prefix`, the number of first
    ids whose log-probabilities do not count. `draws` has, for each source, a function
    that returns the token to take of log-probabilities `(V,)`, instead of the best
    ones.
    """
    beams, eos_id = options["beam_size"], model.settings["eos_id"]
    rules = Rules(model, sources, prefixes, options, draws)
    finished = Finished(rules.limits, num_hypotheses, options)
    sentences = np.arange(len(sources))  # Those that are still searched.
    rows = sentences[:, None]
    ids = np.full(
        (len(sources), beams, rules.limits.max() + 1), model.settings["bos_id"]
    )
    totals = np.full((len(sources), beams), -np.inf, np.float32)
    totals[:, 0] = 0  # If all were active, they would stay equal.
    model.start(sources, beams)
    for length in range(1, ids.shape[2]):
        model.step(ids[:, :, length - 1])
        tokens, values = rules.find_candidates(sentences, ids[:, :, 1:length])
        scores = totals[:, :, None] + values
        if beams > 1:
            scores, tokens, parents = choose_best(rows, scores, tokens)
        else:  # They are in order.
            scores, tokens, parents = scores[:, 0, :1], tokens[:, 0, :1], 0 * rows
        is_end = tokens == eos_id
        if np.count_nonzero(is_end):
            for row, i in zip(*np.nonzero(is_end & (scores > -np.inf)), strict=True):
                sentence, parent = sentences[row], parents[row, i]
                found = [*ids[row, parent, 1:length].tolist(), eos_id]
                was_cut = bool(rules.was_cut[sentence, parent])
                finished.add(sentence, found, scores[row, i], was_cut)
            scores[is_end] = -np.inf
            order = is_end.argsort(axis=1, kind="stable")
            scores, tokens, parents = (
                x[rows, order] for x in (scores, tokens, parents)
            )
        totals, last, parents = (x[:, :beams] for x in (scores, tokens, parents))
        left = finished.may_improve(sentences, totals[:, 0], length)
        count = np.count_nonzero(left)
        if not count:
            break
        if beams > 1:
            ids[:, :, :length] = ids[rows, parents, :length]
        ids[:, :, length] = last
        model.reorder(parents)
        if 4 * count <= 3 * len(sentences):
            model.keep(np.flatnonzero(left))
            totals, ids, sentences = totals[left], ids[left], sentences[left]
            rows = np.arange(len(sentences))[:, None]
    return finished.best


def choose_best(rows, scores, tokens) -> tuple[np.ndarray, ...]:
    """Returns scores, tokens and hypotheses of the best continuations, `(B, 2 K)`."""
    _, beams, width = scores.shape
    scores, tokens = (x.reshape(len(x), -1) for x in (scores, tokens))
    order = (-scores).argsort(axis=1, kind="stable")[:, : 2 * beams]
    return scores[rows, order], tokens[rows, order], order // width


def length_penalty(lengths, options: dict) -> np.ndarray:
    """Returns `((k + n) / (k + 1)) ** α` (Wu et al., 2016, equation 14)."""
    offset = np.float32(options["penalty_offset"])
    alpha = np.float32(options["length_penalty"])
    return ((offset + np.float32(lengths)) / (offset + 1)) ** alpha


def make_draw(seed: int, temperature: float, top_k: int, top_p: float) -> Callable:
    """Returns a function that samples a token of log-probabilities `(V,)`."""
    random = np.random.default_rng(seed)

    def draw(log_probabilities):
        x = log_probabilities / temperature
        order = np.argsort(-x, kind="stable")[: top_k or None]
        p = np.exp(x[order] - x[order[0]])
        p /= p.sum()
        count = np.searchsorted(np.cumsum(p), top_p) + 1
        return random.choice(order[:count], p=p[:count] / p[:count].sum())

    return draw


class Finished:
    """The best finished hypotheses of each sentence, best first."""

    def __init__(self, limits, num_hypotheses, options):
        self.best = [[] for _ in limits]
        self._most = num_hypotheses
        self._worst = np.full(len(limits), -np.inf, np.float32)
        self._penalties = length_penalty(np.arange(limits.max() + 2), options)
        self._last_penalties = self._penalties[limits]

    def add(self, sentence, ids, total, was_cut) -> None:
        """Adds a hypothesis of so high a log-probability, if it is a best one."""
        found = Hypothesis(ids, total / self._penalties[len(ids)], was_cut)
        best = self.best[sentence]
        bisect.insort(best, found, key=lambda each: -each.score)
        del best[self._most :]
        if len(best) == self._most:
            self._worst[sentence] = best[-1].score

    def may_improve(self, sentences, totals, length) -> np.ndarray:
        """Returns where the most probable active hypothesis may become a best one."""
        best_possible = totals / np.maximum(
            self._penalties[length + 1], self._last_penalties[sentences]
        )
        return best_possible > self._worst[sentences]


class Rules:
    """What may follow: limits, prefixes, `min_length`, `no_repeat_ngram`, samples.

    Its arguments are `search`'s. `was_cut`, `(B, K)`, is whether the limit forced
    EOS on a hypothesis.
    """

    def __init__(self, model, sources, prefixes, options, draws):
        self._model, self._options, self._draws = model, options, draws
        self._settings, self._prefixes = model.settings, prefixes
        beams = options["beam_size"]
        starts = np.array([*map(len, prefixes)])
        lengths = np.array([*map(len, sources)]) + options["max_extra_length"]
        self.limits = np.maximum(lengths, starts + 1).clip(
            max=model.settings["max_target_length"]
        )
        self.was_cut = np.zeros((len(sources), beams), bool)
        # The end comes at the limit.
        self._min_lengths = np.minimum(options["min_length"], self.limits - 1)
        # The graph's candidates suffice for a step after these, but the last.
        until = np.maximum(starts, self._min_lengths)
        count = 2 * beams if beams > 1 else 1
        num_candidates = model.settings["num_candidates"]
        self._width = max(count, num_candidates)
        if draws or options["no_repeat_ngram"] or count > num_candidates:
            until = self.limits
        steps = np.arange(self.limits.max() + 1)[:, None]
        self._is_constrained = (steps <= until) | (steps == self.limits)
        self._is_plain = (~self._is_constrained.any(axis=1)).tolist()

    def find_candidates(self, sentences, ids) -> tuple[np.ndarray, ...]:
        """Returns the candidates for the next token of all hypotheses, best first.

        These are tokens `(B, K, C)` and their log-probabilities `(B, K, C)`; `ids`
        are all earlier tokens.
        """
        model, shape = self._model, (*ids.shape[:2], -1)
        tokens = model.output("candidates").reshape(shape)
        values = model.output("log_probabilities").reshape(shape)
        length = ids.shape[2] + 1
        if self._is_plain[length]:
            return tokens, values
        others = np.flatnonzero(self._is_constrained[length, sentences])
        missing = [(0, 0), (0, 0), (0, self._width - tokens.shape[2])]
        tokens, values = np.pad(tokens, missing), np.pad(values, missing)
        values[others] = -np.inf
        every = model.log_probabilities()
        for row in others:
            best, found = self._find_constrained(every[row], sentences[row], ids[row])
            tokens[row, :, : best.shape[1]] = best
            values[row, :, : best.shape[1]] = found
        return tokens, values

    def _find_constrained(self, every, sentence, ids):
        """Returns `find_candidates` of one sentence, of log-probabilities `(K, V)`.

        If no token may follow, EOS stays.
        """
        eos_id, length = self._settings["eos_id"], ids.shape[1] + 1
        allowed = every.copy()
        allowed[:, self._settings["forbidden_ids"]] = -np.inf
        ends = allowed[:, eos_id].copy()
        if length <= self._min_lengths[sentence]:
            allowed[:, eos_id] = -np.inf
        size = self._options["no_repeat_ngram"]
        if 0 < size < length:
            ngrams = np.lib.stride_tricks.sliding_window_view(ids, size, axis=1)
            last = ids[:, None, length - size :]
            beams, places = np.nonzero((ngrams[:, :, :-1] == last).all(axis=2))
            allowed[beams, ngrams[beams, places, -1]] = -np.inf
        is_stuck = allowed.max(axis=1) == -np.inf
        allowed[is_stuck, eos_id] = ends[is_stuck]
        if self._draws:
            best = np.array([[self._draws[sentence](allowed[0])]])
        else:
            best = np.argsort(-allowed, axis=1, kind="stable")[:, : self._width]
        forced = self._prefixes[sentence][length - 1 : length]
        if length == self.limits[sentence]:
            self.was_cut[sentence] = best[:, 0] != eos_id
            forced = [eos_id]
        if len(forced):
            best, allowed = np.tile(forced, (len(every), 1)), every
            if length <= self._options["unscored_prefix"]:
                allowed = np.zeros_like(every)
        return best, np.take_along_axis(allowed, best, axis=1)
