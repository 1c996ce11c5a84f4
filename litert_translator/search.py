"""Beam search of a sentence (Section 6.1), in plain Python.

Its rules are those of `keras_transformer.beam_search`: the authors' `2 K`
candidates, the length penalty, and a stop that never changes the result.
"""

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
    source: list[int],
    prefix: list[int],
    num_hypotheses: int,
    options: dict,
    draw=None,
) -> list[Hypothesis]:
    """Returns the best hypotheses of a source, best first.

    Each step takes the best `2 K` continuations. Those that end become finished
    hypotheses, and the best `K` of the others stay active. The search ends when
    no active hypothesis can become one of the best `num_hypotheses`.

    `source` are ids with EOS, `prefix` the first ids of the translation, and
    `options` all options of the search. `draw` returns the token to take of
    log-probabilities `(V,)`, instead of the best ones.
    """
    beams, eos_id = options["beam_size"], model.eos_id
    prefix = list(prefix)[: model.max_length - 1]
    limit = max(len(source) + options["max_extra_length"], len(prefix) + 1)
    limit = min(limit, model.max_length)
    # The end comes at the limit.
    options = {**options, "min_length": min(options["min_length"], limit - 1)}
    model.start(source, beams)
    active = [([], np.float32(0))]  # Ids, and their log-probability.
    finished = []
    for length in range(1, limit + 1):
        last = [ids[-1] if ids else model.bos_id for ids, _ in active]
        model.step(last + [model.bos_id] * (beams - len(last)))
        forced = prefix[length - 1] if length <= len(prefix) else None
        if length == limit:
            forced = eos_id
        rows = [ids for ids, _ in active]
        tokens, values, wants_end = find_candidates(
            model, rows, length, forced, options, draw
        )
        totals = np.array([total for _, total in active])[:, None] + values
        order = np.argsort(-totals, axis=None, kind="stable")
        left = []
        for place in order[: count_candidates(beams)].tolist():
            parent, column = divmod(place, totals.shape[1])
            total = totals[parent, column]
            ids = [*active[parent][0], int(tokens[parent, column])]
            if ids[-1] == eos_id:
                was_cut = length == limit and not wants_end[parent]
                score = total / length_penalty(length, options)
                finished.append(Hypothesis(ids, score, bool(was_cut)))
            elif len(left) < beams and total > -np.inf:
                left.append((parent, ids, total))
        # The sort is stable: the earlier of equal hypotheses stays first.
        finished.sort(key=lambda hypothesis: -hypothesis.score)
        del finished[num_hypotheses:]
        if not left:
            break
        best_possible = left[0][2] / max(
            length_penalty(length + 1, options), length_penalty(limit, options)
        )
        is_full = len(finished) == num_hypotheses
        if is_full and best_possible <= finished[-1].score:
            break
        parents = [parent for parent, _, _ in left]
        model.reorder(parents + [0] * (beams - len(parents)))
        active = [(ids, total) for _, ids, total in left]
    return finished


def count_candidates(beams: int) -> int:
    """Returns how many continuations a step takes; greedily, the best one."""
    return 2 * beams if beams > 1 else 1


def find_candidates(
    model: Model,
    rows: list[list[int]],
    length: int,
    forced: int | None,
    options: dict,
    draw=None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the candidates after a step, for the ids of each active hypothesis.

    These are tokens `(K, C)`, best first; their log-probabilities `(K, C)`; and
    bools `(K,)`, whether the best token would be EOS were it not `forced`.
    """
    tokens = model.output("candidates")
    count = count_candidates(options["beam_size"])
    has_rules = options["no_repeat_ngram"] or length <= options["min_length"]
    if not (draw or has_rules or forced is not None or tokens.shape[1] < count):
        values = model.output("log_probabilities")
        ends = tokens[:, 0] == model.eos_id
        return tokens[: len(rows)], values[: len(rows)], ends
    every = model.log_probabilities()[: len(rows)]
    allowed = every.copy()
    allowed[:, model.forbidden_ids] = -np.inf
    for row, ids in zip(allowed, rows, strict=True):
        forbid(row, ids, length, model.eos_id, options)
    if draw:
        tokens = np.array([[draw(allowed[0])]])
    else:
        tokens = np.argsort(-allowed, axis=1, kind="stable")[:, :count]
    ends = tokens[:, 0] == model.eos_id
    if forced is not None:
        tokens = np.full((len(rows), 1), forced)
        allowed = every
    return tokens, np.take_along_axis(allowed, tokens, axis=1), ends


def length_penalty(length: int, options: dict) -> np.float32:
    """Returns `((k + n) / (k + 1)) ** α` (Wu et al., 2016, equation 14)."""
    offset = np.float32(options["penalty_offset"])
    alpha = np.float32(options["length_penalty"])
    return ((offset + np.float32(length)) / (offset + 1)) ** alpha


def forbid(row, ids, length, eos_id, options) -> None:
    """Sets `row`, log-probabilities `(V,)`, to -inf for tokens that may not follow.

    If none may, EOS stays. `length` counts the ids so far and the next one.
    """
    end = row[eos_id]
    if length <= options["min_length"]:
        row[eos_id] = -np.inf
    if size := options["no_repeat_ngram"]:
        last = ids[len(ids) - size + 1 :]
        for start in range(len(ids) - size + 1):
            if ids[start : start + size - 1] == last:
                row[ids[start + size - 1]] = -np.inf
    if row.max() == -np.inf:
        row[eos_id] = end
