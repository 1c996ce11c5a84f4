"""Puts mistakes into the code, one at a time: do the tests notice?

    python -m tests.mutations                 # all of them: an hour
    python -m tests.mutations train/ seed     # those in which a word occurs

Each mistake is made in a copy of the files that git tracks, after the tests
have passed there without it. The results are

    caught          the tests of the module fail
    SURVIVED        they pass: a test is missing
    does not apply  the text is not there, or more than once
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parent.parent
SECONDS = 900  # Tests that take longer hang: that is noticed, too.

# A file, and the tests that should notice, seen from the folder of its tests;
# below, texts that it has once, and what stands in their place. Mistakes that
# someone could make.
MUTATIONS = r"""
train/fit.py: test_fit.py
- make_dataset(plan, strategy, first, None, limit)
+ make_dataset(plan, strategy, first)
- "clip_norm": update_options.clip_norm
+ "clip_norm": None
- set_random_seed(update_options.seed)
+ set_random_seed(0)
train/__main__.py: test_command.py
- update_options.average_decay is not None
+ False
export/model/forced_decoding.py: .
- transformer, settings.align_layer
+ transformer, None
- return tf.where(padding_mask(labels), log_probabilities, 0.0)
+ return log_probabilities
keras_transformer/attention.py: test_attention.py
- query.shape[-1] ** -0.5
+ key.shape[-2] ** -0.5
- ops.where(mask, logits, FORBIDDEN)
+ ops.where(mask, logits, -1e3)
- start_index, padding = 0, (value_mask, key_mask)
+ start_index, padding = 0, (value_mask,)
- if return_attention_scores or self.dropout:
+ if return_attention_scores:
keras_transformer/attention.py: test_attention.py test_decoder.py
- causal_mask(length, key_length, start_index)
+ causal_mask(length, key_length)
keras_transformer/masks.py: test_masks.py
- ops.less_equal(ops.arange(key_length)
+ ops.less(ops.arange(key_length)
keras_transformer/masks.py: test_masks.py test_attention.py
- attention_mask[:, None] if rank == 3
+ attention_mask[None] if rank == 3
keras_transformer/losses.py: test_losses.py
- label_smoothing / (vocabulary_size - 1)
+ label_smoothing / vocabulary_size
- weights = token_weights(y_true, sample_weight)
+ weights = sample_weight
keras_transformer/schedules.py: test_schedules.py
- ops.cast(step, "float32") + 1.0
+ ops.cast(step, "float32")
- return self.scale * self.hidden_dim
+ return self.hidden_dim
keras_transformer/residual.py: test_residual.py
- inputs + self.output_dropout(outputs, training=training)
+ self.output_dropout(inputs + outputs, training=training)
- epsilon=layer.norm_epsilon
+ epsilon=1e-3
keras_transformer/embedding.py: test_embedding.py
- return ops.take(table * scale, ids, axis=0)
+ return ops.take(table, ids, axis=0)
keras_transformer/metrics.py: test_metrics.py
- self.count.assign_add(ops.sum(weights))
+ self.count.assign_add(ops.sum(ops.ones_like(weights)))
keras_transformer/restricted_attention.py: test_restricted_attention.py
- last = self.radius if after else 0
+ last = self.radius
keras_transformer/encoder.py: test_encoder.py
- y = self.feed_forward(self.feed_forward_residual.prepare(x))
+ y = self.feed_forward(x)
keras_transformer/base_model.py: test_transformer.py test_decoder.py
- self.position_encoding(x, start_index=start_index)
+ self.position_encoding(x)
keras_transformer/transformer.py: test_keras_workflows.py
- ops.maximum(lengths + max_extra_length, 1)
+ ops.maximum(lengths * 0 + ops.max(lengths) + max_extra_length, 1)
keras_transformer/search/beam_search.py: .
- totals = beams.log_probabilities[:, :, None] + values
+ totals = values
- penalty = length_penalty_of(length, alpha, options.penalty_offset)
+ penalty = ops.ones_like(alpha)
keras_transformer/search/tensorflow/candidates.py: test_search_loop.py
- count + num_forbidden
+ count
keras_transformer/search/tensorflow/search_loop.py: test_search_loop.py
- done = ~(best_possible_score > worst)
+ done = ~(best_possible_score >= worst)
- length_penalty_of(lengths + 1, alpha, offset)
+ length_penalty_of(lengths, alpha, offset)
- is_filled & finished.truncated
+ is_filled & ~finished.truncated
keras_transformer/search/tensorflow/graph_transformer.py: .
- return tf.minimum(lengths, self._transformer.sequence_length)
+ return lengths
keras_transformer/tokenizer.py: test_tokenizer.py
- tf.cast(ids == EOS_ID, tf.int32), axis=1) > 0
+ tf.cast(ids == EOS_ID, tf.int32), axis=1) > 1
- return self._source.id_to_string(ids)
+ return self._target.id_to_string(ids)
- return tokenize(self._target, strings)
+ return tokenize(self._source, strings)
- self._target.detokenize(
+ self._source.detokenize(
- int(self._target.vocab_size())
+ int(self._source.vocab_size())
text_processing/tree_repair.py: .
- balanced[place:place] = [LEAF] * after
+ balanced[len(balanced):] = [LEAF] * after
train/data/batch_plan.py: test_batches.py
- np.random.default_rng((self._seed, pass_index))
+ np.random.default_rng(self._seed)
- np.concatenate([*pairs, left])
+ np.concatenate(pairs)
train/data/batch_plan.py: test_batches.py ../test_fit.py
- np.random.default_rng((self._seed, pass_index))
+ np.random.default_rng(pass_index)
train/data/batch_plan.py: test_batches.py ../test_fit.py
- tokens = self._pairs.targets.lengths[indices].sum()
+ tokens = self._pairs.targets.lengths[indices[part::num_parts]].sum()
train/data/batches.py: test_batches.py ../test_fit.py
- tf.data.Dataset.range(first * local_replicas, end)
+ tf.data.Dataset.range(0, end)
train/data/batch_plan.py: test_pair_variants.py
- (pairs + pass_index) % self._variants
+ pairs % self._variants
- int(before * self._starts[-1] + self._starts[within])
+ int(self._starts[within])
train/data/pair_variants.py: test_pair_variants.py
- lengths[1] > self._max_length
+ lengths[1] > 10 * self._max_length
- self._samplers[side](lines, side, *name)
+ self._samplers[side](lines, side)
train/data/subword_sampling.py: test_subword_sampling.py
- f"{self._seed} {number} {word}"
+ f"{hash(word)} {number}"
- generator.random() >= self._share
+ generator.random() >= self._share**2
- self._share * score
+ score
train/data/augmentation.py: test_augmentation.py
- parts[::2] = map(change, parts[::2])
+ parts[:] = map(change, parts)
train/data/pair_filters.py: test_pair_filters.py
- side[-start % step :: step]
+ side[::step]
- 2 * letters[script] < letters.total()
+ letters[script] < letters.total()
train/data/tokenizer_file.py: test_vocabulary_options.py
- changed.pieces.extend(others)
+ changed.pieces.extend(reversed(others))
train/data/tokenizer_file.py: ../../convert/test_refusals.py
- UNKNOWN_PENALTY = 10.0
+ UNKNOWN_PENALTY = 20.0
train/data/encoding.py: .
- full = shorter > 1
+ full = longer > 1
train/data/encoding.py: test_encoding.py
- (longer <= self.max_length)
+ (longer < self.max_length)
- if vocabulary_size <= 1 << 16
+ if vocabulary_size <= 1 << 17
train/data/vocabulary.py: test_vocabulary.py
- "byte_fallback": True
+ "byte_fallback": False
train/loop/distributed_optimizer.py: test_distributed_optimizer.py
- tf.minimum(1.0, self._clip_norm / norm)
+ self._clip_norm / norm
- factor /= self.loss_scale.value
+ pass
- decay = tf.where(finite, decay, 1.0)
+ pass
train/loop/distributed_optimizer.py: . ../test_fit.py
- gradients = context.all_reduce("SUM", gradients)
+ gradients = context.all_reduce("MEAN", gradients)
train/loop/training_model.py: ../test_fit.py
- tf.reduce_sum(losses) / batch["num_tokens"]
+ tf.reduce_mean(losses)
- layer.seed_generator.__class__ = ReplicaSeedGenerator
+ pass
- self.token_losses(micro_batch(batch, k), training=False)
+ self.token_losses(micro_batch(batch, k), training=True)
train/loop/tied_softmax_loss.py: .
- of_states = upstream * (mean - tf.gather(table, labels))
+ of_states = upstream * (mean + tf.gather(table, labels))
train/loop/multi_worker.py: test_multi_worker.py
- not has_chief and index == 0
+ index == 0
train/run/checkpoint_store.py: . ../test_interruption.py
- path.replace(self._folder / path.name)
+ (self._folder / path.name).write_bytes(path.read_bytes())
train/run/training_state.py: . ../test_fit.py
- if int(r["step"]) <= self.updates
+ if int(r["step"]) < self.updates
train/run/training_state.py: ../test_interruption.py .
- raise SystemExit(128 +
+ raise SystemExit(0 *
train/run/best_checkpoints.py: . ../test_command.py
- epochs.sort(key=lambda epoch: -epoch[0])
+ epochs.sort(key=lambda epoch: epoch[0])
train/run/checkpoint_averaging.py: . ../test_fit.py
- averaged.set_weights([total / len(paths) for total in sums])
+ averaged.set_weights([total / len(sums) for total in sums])
train/run/checkpoint_averaging.py: test_checkpoint_averaging.py
- paths = paths[-1:]
+ paths = paths[:1]
train/monitoring/validation_bleu.py: test_validation_bleu.py
- translations = self.translate()
+ translations = self._pairs.targets
export/model/search.py: .
- tf.where(is_empty_source(lengths), 1, limits)
+ limits
- forbidden_ids=(PADDING_ID, BOS_ID, *padded)
+ forbidden_ids=(PADDING_ID, BOS_ID)
export/model/tokenized_model.py: .
- was_cut | (lengths > limit)
+ was_cut | (lengths >= limit)
export/model/request_validation.py: .
- (x >= -MAX_LENGTH_PENALTY) & (x <= MAX_LENGTH_PENALTY)
+ ~((x < -MAX_LENGTH_PENALTY) | (x > MAX_LENGTH_PENALTY))
export/bundle/model_loading.py: ../model
- return with_dtype(transformer, precision),
+ return transformer,
export/bundle/sample_requests.py: . ../test_check.py
- return math.isfinite(wanted) and math.isclose(
+ return True or math.isclose(
export/bundle/versions.py: . ../test_translate.py
-             shutil.rmtree(part)
-             raise
+             raise
export/bundle/file_layout.py: . ../test_check.py
- hashlib.file_digest(file, "sha256").hexdigest()
+ hashlib.sha256(name.encode()).hexdigest()
export/check.py: test_check.py
- if any(check.problems for check in checks):
-         raise
+ if checks[-1].problems:
+         raise
translate/runtime/tf_serving.py: test_client.py
- yield pending.popleft().result()
-             while
+ yield pending.pop().result()
+             while
translate/line_batching.py: test_translate.py test_client.py
- if batch and (too_long or len(batch) == max_rows):
+ if batch and too_long:
translate/line_batching.py: test_translate.py
- line.rstrip(b"\r\n") for line in window
+ line.rstrip(b"\n") for line in window
translate/scoring/bracket_scores.py: test_bracket_scores.py
- (found[0] & found[1]).total()
+ (found[0] | found[1]).total()
- tag not in PUNCTUATION for tag in gold.tags
+ tag not in PUNCTUATION for tag in parse.tags
translate/scoring/translation_scores.py: .
- float(last.score - other.score)
+ float(other.score - last.score)
export/__main__.py: test_translate.py
- align_layer=options.align_layer
+ align_layer=None
serve/batching.py: test_batching.py
- <= MAX_BATCH_LENGTH_RATIO * min(each.tokens, lead.tokens)
+ <= 8 * min(each.tokens, lead.tokens)
- waiting + len(sizes) > self._max_waiting
+ waiting + len(sizes) >= self._max_waiting
translate/runtime/server_address.py: test_server_address.py
- "https": 443
+ "https": 80
convert/tensor_files.py: test_from_marian.py
- numbers.reshape(shape) / factor
+ numbers.reshape(shape) * factor
- numbers.reshape(shape[::-1]).T
+ numbers.reshape(shape)
convert/weight_mapping.py: test_refusals.py
- np.where(vocabulary.can_be_generated, bias, NEVER)
+ bias
convert/vocabularies.py: test_refusals.py
- lowest - UNKNOWN_PENALTY
+ lowest
convert/to_hugging_face.py: test_refusals.py
- table = to_their_order(np.array(embedding.embeddings, np.float32), (1,))
+ table = np.array(embedding.embeddings, np.float32)
- tensors["model.encoder.embed_tokens.weight"] = to_their_order(table, (1,))
+ tensors["model.encoder.embed_tokens.weight"] = table
convert/hugging_face_config.py: test_refusals.py
- EPSILON = 1e-5
+ EPSILON = 1e-6
command_line/errors.py: .
- raise SystemExit(2)
+ raise SystemExit(1)
"""


def read_mutations() -> Iterator[tuple[str, str, str, str]]:
    """Yields a file, a text of it, what takes its place, and tests."""
    for name, beside, pairs in re.findall(
        r"^(\S+): (.*)\n((?:[-+] .*\n)+)", MUTATIONS, re.M
    ):
        folder = os.path.dirname(f"tests/{name}")
        tests = [os.path.normpath(f"{folder}/{p}") for p in beside.split()]
        for sides in re.findall(r"((?:- .*\n)+)((?:\+ .*\n)+)", pairs):
            old, new = (re.sub("^..", "", s, flags=re.M)[:-1] for s in sides)
            yield name, old, new, " ".join(tests)


def run_tests(root: pathlib.Path, tests: str, timeout: int | None = SECONDS) -> int:
    """Returns pytest's exit code, or 1 where it does not end."""
    command = [sys.executable, "-m", "pytest", "-qx", "-m", "not slow"]
    command += tests.split()
    try:
        with (root / "tests.log").open("w") as log:
            return subprocess.run(
                command, cwd=root, stdout=log, stderr=log, timeout=timeout
            ).returncode
    except subprocess.TimeoutExpired:
        return 1


def try_one(root: pathlib.Path, mutation: tuple[str, str, str, str]) -> str:
    """Says what the tests say of a mistake, and takes it out again."""
    name, old, new, tests = mutation
    path = root / name
    text = path.read_text("utf-8") if path.exists() else ""
    if text.count(old) != 1:
        return "does not apply"
    path.write_text(text.replace(old, new), "utf-8")
    try:
        code = run_tests(root, tests)
    finally:
        path.write_text(text, "utf-8")
    words = {0: "SURVIVED", 1: "caught"}
    return words.get(code, f"pytest ends with {code}: see the tests' names")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations", description=__doc__.splitlines()[0]
    )
    parser.add_argument("words", nargs="*", help="those in which one occurs")
    words = parser.parse_args().words
    chosen = [
        mutation
        for mutation in read_mutations()
        if not words or any(w in " ".join(mutation[:3]) for w in words)
    ]
    files = subprocess.check_output(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, text=True
    )
    results = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in filter(None, files.split("\0")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        tests = sorted({path for m in chosen for path in m[3].split()})
        if code := run_tests(root, " ".join(tests), timeout=None):
            print((root / "tests.log").read_text("utf-8")[-2000:])
            raise SystemExit(f"pytest ends with {code} before any mistake")
        for mutation in chosen:
            started = time.monotonic()
            results.append(try_one(root, mutation))
            name, old, new, _ = mutation
            seconds = time.monotonic() - started
            print(f"{results[-1]:14} {seconds:4.0f} s  {name}: {old!r}")
            print(f"{'':14}         -> {new!r}", flush=True)
    print(f"{results.count('caught')} of {len(results)} caught")
    raise SystemExit(any(result != "caught" for result in results))


if __name__ == "__main__":
    main()
