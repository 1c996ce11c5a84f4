/** Beam search of a sentence, with the rules of `litert_translator.search`.
 *
 * Scores are rounded to float32, as there.
 */

/** Returns the best hypothesis of a source: `{ids, score, truncated}`.
 *
 * @param model The `Model`.
 * @param source Ids with EOS.
 * @param given All options of the search, and `prefix`, the tokens that the
 *     translation begins with; their log-probabilities do not count.
 */
export async function search(model, source, given) {
  const { beam_size: beams } = given,
    { eosId, forbiddenIds } = model;
  const count = beams === 1 ? 1 : 2 * beams;
  const limit = Math.min(
    Math.max(source.length + given.max_extra_length, 1),
    model.maxLength,
  );
  // The end comes at the limit.
  const shortest = Math.min(given.min_length, limit - 1);
  const options = { ...given, min_length: shortest };
  await model.start(source, beams);
  let active = [{ ids: [], total: 0 }],
    best;
  for (let length = 1; length <= limit; length++) {
    const tokens = active.map(({ ids }) => ids.at(-1) ?? model.bosId);
    while (tokens.length < beams) tokens.push(model.bosId);
    let [candidates, values] = await model.step(tokens);
    let wantsEnd;
    const isLast = length === limit;
    const isClosed = options.no_repeat_ngram || length <= options.min_length;
    if (isLast || isClosed || candidates[0].length < count) {
      const every = model.logProbabilities();
      const allowed = every.map((row) => row.slice());
      allowed.forEach((row, i) => {
        for (const id of forbiddenIds) row[id] = -Infinity;
        if (active[i]) forbid(row, active[i].ids, length, eosId, options);
      });
      candidates = allowed.map((row) => highest(row, count));
      wantsEnd = candidates.map(([first]) => first === eosId);
      if (isLast) candidates = candidates.map(() => [eosId]);
      const found = isLast ? every : allowed;
      values = candidates.map((row, i) => row.map((id) => found[i][id]));
    }
    if (length <= given.prefix.length) {
      candidates = candidates.map(() => [given.prefix[length - 1]]);
      values = candidates.map(() => [0]);
    }
    const totals = active.flatMap(({ total }, i) =>
      Array.from(values[i], (x) => Math.fround(total + x)),
    );
    const width = candidates[0].length;
    const left = [];
    for (const place of highest(totals, count)) {
      const parent = Math.floor(place / width),
        total = totals[place];
      const id = candidates[parent][place % width];
      if (id === eosId) {
        const score = Math.fround(total / lengthPenalty(length, options));
        // Of equal scores the earlier hypothesis stays first.
        if (!best || score > best.score) {
          best = {
            ids: active[parent].ids,
            score,
            truncated: isLast && !wantsEnd[parent],
          };
        }
      } else if (left.length < beams && total > -Infinity) {
        left.push({ parent, total, ids: [...active[parent].ids, id] });
      }
    }
    if (!left.length) break;
    const penalty = Math.max(
      lengthPenalty(length + 1, options),
      lengthPenalty(limit, options),
    );
    if (best && Math.fround(left[0].total / penalty) <= best.score) break;
    const parents = left.map(({ parent }) => parent);
    while (parents.length < beams) parents.push(0);
    model.reorder(parents);
    active = left;
  }
  return best;
}

/** Returns `((k + n) / (k + 1)) ** α` (Wu et al., 2016, equation 14). */
function lengthPenalty(length, options) {
  const offset = Math.fround(options.penalty_offset);
  const alpha = Math.fround(options.length_penalty);
  const ratio = Math.fround(Math.fround(offset + length) / Math.fround(offset + 1));
  return Math.fround(ratio ** alpha);
}

/** Returns the indices of the highest values; of equal ones the first. */
function highest(values, count) {
  const best = [];
  values.forEach((value, i) => {
    if (best.length === count && !(value > values[best.at(-1)])) return;
    let place = best.length;
    while (place && value > values[best[place - 1]]) place--;
    best.splice(place, 0, i);
    if (best.length > count) best.pop();
  });
  return best;
}

/** Sets the log-probabilities of tokens that may not follow to -Infinity. */
function forbid(row, ids, length, eosId, options) {
  const end = row[eosId],
    size = options.no_repeat_ngram;
  if (length <= options.min_length) row[eosId] = -Infinity;
  if (size) {
    const last = ids.slice(ids.length - size + 1).join();
    for (let start = 0; start + size <= ids.length; start++) {
      if (ids.slice(start, start + size - 1).join() === last)
        row[ids[start + size - 1]] = -Infinity;
    }
  }
  if (row.every((x) => x === -Infinity)) row[eosId] = end;
}
