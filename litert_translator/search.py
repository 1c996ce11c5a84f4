"""Beam search of several sentences at once (Section 6.1), with NumPy.

Its rules are those of `keras_transformer.beam_search`: the authors' `2 K`
candidates, the length penalty, and a stop that never changes the result.

Axes: `B` sentences, `K` hypotheses of a sentence, `C` candidates, `V` vocabulary.
"""

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
    ids whose log-probabilities do not count; `max_extra_length` may have an int for
    each source. `draws` has, for each source, a function that returns the token
    to take of log-probabilities `(V,)`, instead of the best ones.
    """
    beams = options["beam_size"]
    rules = Rules(model, sources, prefixes, options, draws)
    finished = Finished(model.eos_id, rules, num_hypotheses, options)
    sentences = np.arange(len(sources))  # Those that are still searched.
    rows = sentences[:, None]
    last = np.full((len(sources), beams), model.bos_id)
    totals = np.full((len(sources), beams), -np.inf, np.float32)
    totals[:, 0] = 0  # If all were active, they would stay equal.
    model.start(sources, beams)
    for length in range(1, rules.longest + 1):
        model.step(last)
        tokens, values = rules.find_candidates(sentences, length)
        scores = (totals[:, :, None] + values).reshape(len(sentences), -1)
        order = (-scores).argsort(axis=1, kind="stable")[:, : count_candidates(beams)]
        scores, tokens = scores[rows, order], tokens.reshape(scores.shape)[rows, order]
        parents = order // values.shape[2]
        is_end = tokens == model.eos_id
        if np.count_nonzero(is_end):
            for row, i in zip(*np.nonzero(is_end & (scores > -np.inf)), strict=True):
                finished.add(sentences[row], parents[row, i], length, scores[row, i])
            scores[is_end] = -np.inf
            order = is_end.argsort(axis=1, kind="stable")
            scores, tokens, parents = (
                x[rows, order] for x in (scores, tokens, parents)
            )
        totals, last, parents = (x[:, :beams] for x in (scores, tokens, parents))
        rules.history[:, length - 1, sentences] = last, parents
        left = finished.may_improve(sentences, totals[:, 0], length)
        count = np.count_nonzero(left)
        if not count:
            break
        model.reorder(parents)
        if 4 * count <= 3 * len(sentences):
            model.keep(np.flatnonzero(left))
            totals, last, sentences = totals[left], last[left], sentences[left]
            rows = np.arange(len(sentences))[:, None]
    return finished.trace()


def count_candidates(beams: int) -> int:
    """Returns how many continuations a step takes; greedily, the best one."""
    return 2 * beams if beams > 1 else 1


def length_penalty(lengths, options: dict) -> np.ndarray:
    """Returns `((k + n) / (k + 1)) ** α` (Wu et al., 2016, equation 14)."""
    offset = np.float32(options["penalty_offset"])
    alpha = np.float32(options["length_penalty"])
    return ((offset + np.float32(lengths)) / (offset + 1)) ** alpha


class Finished:
    """The best finished hypotheses of each sentence. Its arguments are `search`'s."""

    def __init__(self, eos_id, rules, num_hypotheses, options):
        self._eos_id, self._rules, self._most = eos_id, rules, num_hypotheses
        limits = rules.limits
        self._penalties = length_penalty(np.arange(rules.longest + 2), options)
        self._last_penalties = self._penalties[limits]
        self._best = [[] for _ in limits]  # Scores, beams, lengths, and whether cut.
        self._worst = np.full(len(limits), -np.inf, np.float32)

    def add(self, sentence, parent, length, total) -> None:
        """Adds the hypothesis that continues `parent` with EOS."""
        score = total / self._penalties[length]
        was_cut = bool(self._rules.was_cut[sentence, parent])
        best = self._best[sentence]
        best.append((score, parent, length, was_cut))
        # The sort is stable: the earlier of equal hypotheses stays first.
        best.sort(key=lambda hypothesis: -hypothesis[0])
        del best[self._most :]
        if len(best) == self._most:
            self._worst[sentence] = best[-1][0]

    def may_improve(self, sentences, totals, length) -> np.ndarray:
        """Returns where the most probable active hypothesis may become a best one."""
        best_possible = totals / np.maximum(
            self._penalties[length + 1], self._last_penalties[sentences]
        )
        return best_possible > self._worst[sentences]

    def trace(self) -> list[list[Hypothesis]]:
        """Returns the hypotheses of each sentence, best first."""

        def make(sentence, score, parent, length, was_cut):
            ids = self._rules.trace(sentence, parent, length - 1)
            return Hypothesis([*ids, self._eos_id], score, was_cut)

        return [[make(i, *each) for each in best] for i, best in enumerate(self._best)]


class Rules:
    """What may follow: limits, prefixes, `min_length`, `no_repeat_ngram`, samples.

    Its arguments are `search`'s. `history`, `(2, limit, B, K)`, has of each step
    the tokens of the hypotheses, and which hypotheses these continue; `was_cut`,
    `(B, K)`, whether the limit forced EOS on a hypothesis.
    """

    def __init__(self, model, sources, prefixes, options, draws):
        self._model, self._options, self._draws = model, options, draws
        self._prefixes = [prefix[: model.max_length - 1] for prefix in prefixes]
        extra = options["max_extra_length"]
        extras = extra if np.ndim(extra) else [extra] * len(sources)
        limits = [
            min(max(len(source) + extra, len(prefix) + 1), model.max_length)
            for source, extra, prefix in zip(
                sources, extras, self._prefixes, strict=True
            )
        ]
        self.limits, self.longest = np.array(limits), max(limits)
        shape = self.longest, len(sources), options["beam_size"]
        self.history = np.zeros((2, *shape), np.int32)
        self.was_cut = np.zeros(shape[1:], bool)
        # The end comes at the limit.
        self._min_lengths = [min(options["min_length"], limit - 1) for limit in limits]
        # The graph's candidates suffice for a step after these, but the last.
        until = [*map(max, map(len, self._prefixes), self._min_lengths)]
        count = count_candidates(options["beam_size"])
        self._width = max(count, model.num_candidates)
        if draws or options["no_repeat_ngram"] or count > model.num_candidates:
            until = limits
        self._until = np.array(until)
        self._plain_lengths = range(max(until) + 1, min(limits))

    def trace(self, sentence, beam, length) -> list[int]:
        """Returns the ids of a hypothesis after so many steps."""
        ids = []
        steps = zip(*self.history[:, :length, sentence].tolist(), strict=True)
        for tokens, parents in reversed([*steps]):
            ids.append(tokens[beam])
            beam = parents[beam]
        return ids[::-1]

    def find_candidates(self, sentences, length) -> tuple[np.ndarray, ...]:
        """Returns the candidates for the next token of all hypotheses, best first.

        These are tokens `(B, K, C)` and their log-probabilities `(B, K, C)`.
        """
        model, shape = self._model, (len(sentences), self._options["beam_size"], -1)
        tokens = model.output("candidates").reshape(shape)
        values = model.output("log_probabilities").reshape(shape)
        if length in self._plain_lengths:  # It is faster.
            return tokens, values
        limits = self.limits[sentences]
        others = np.flatnonzero((length <= self._until[sentences]) | (length == limits))
        if not len(others):
            return tokens, values
        missing = [(0, 0), (0, 0), (0, self._width - tokens.shape[2])]
        tokens, values = np.pad(tokens, missing), np.pad(values, missing)
        values[others] = -np.inf
        every = model.log_probabilities()
        for row in others:
            best, found = self._choose(every[row], sentences[row], length)
            tokens[row, :, : best.shape[1]] = best
            values[row, :, : best.shape[1]] = found
        return tokens, values

    def _choose(self, every, sentence, length):
        """Returns `find_candidates` of one sentence, of log-probabilities `(K, V)`.

        If no token may follow, EOS stays.
        """
        eos_id = self._model.eos_id
        allowed = every.copy()
        allowed[:, self._model.forbidden_ids] = -np.inf
        ends = allowed[:, eos_id].copy()
        if length <= self._min_lengths[sentence]:
            allowed[:, eos_id] = -np.inf
        if size := self._options["no_repeat_ngram"]:
            for beam, row in enumerate(allowed):
                ids = self.trace(sentence, beam, length - 1)
                last = ids[len(ids) - size + 1 :]
                for start in range(len(ids) - size + 1):
                    if ids[start : start + size - 1] == last:
                        row[ids[start + size - 1]] = -np.inf
        is_stuck = allowed.max(axis=1) == -np.inf
        allowed[is_stuck, eos_id] = ends[is_stuck]
        if self._draws:
            best = np.array([[self._draws[sentence](allowed[0])]])
        else:
            best = np.argsort(-allowed, axis=1, kind="stable")[:, : self._width]
        prefix = self._prefixes[sentence]
        if length == self.limits[sentence]:
            self.was_cut[sentence] = best[:, 0] != eos_id
            best, allowed = np.full((len(every), 1), eos_id), every
        elif length <= len(prefix):
            best, allowed = np.full((len(every), 1), prefix[length - 1]), every
            if length <= self._options["unscored_prefix"]:
                allowed = np.zeros_like(every)
        return best, np.take_along_axis(allowed, best, axis=1)
