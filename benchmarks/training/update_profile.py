"""Measures the time of each part of a training update.

    python -m benchmarks.training.update_profile --size base

times the update and parts of it, each compiled alone, in alternation. A row is
the difference of the medians of a part and of the part before it.
"""

import argparse
import statistics
from collections.abc import Callable

import tensorflow as tf

from benchmarks.shared.model_sizes import SIZES
from benchmarks.shared.model_sizes import make_batch
from benchmarks.training.keras_systems import make_package_task
from benchmarks.training.keras_systems import prepare_package
from benchmarks.training.worker import mean_seconds
from keras_transformer.masks import padding_mask


def make_cumulative_steps(task, batch: dict) -> dict[str, Callable]:
    """Returns functions that do more and more of an update."""
    transformer = task.transformer
    variables = task.trainable_variables

    @tf.function
    def encode():
        return tf.reduce_sum(
            transformer.encode(batch["source_ids"][0], training=True)
        )

    @tf.function
    def decode():
        ids = batch["source_ids"][0]
        memory = transformer.encode(ids, training=True)
        states = transformer.decode_states(
            batch["target_ids"][0], memory, padding_mask(ids), training=True
        )
        return tf.reduce_sum(states)

    @tf.function
    def decode_gradients():
        with tf.GradientTape() as tape:
            total = decode()
        zero = tf.UnconnectedGradients.ZERO
        gradients = tape.gradient(total, variables, unconnected_gradients=zero)
        # The rows of the embedding added up, as `task.gradients` does.
        return [tf.convert_to_tensor(gradient) for gradient in gradients]

    @tf.function
    def gradients():
        return task.gradients(batch)

    @tf.function
    def update():
        return task.train_step(batch)

    return {
        "encoder, forward": encode,
        "decoder, forward": decode,
        "both, backward": decode_gradients,
        "logits and loss, forward and backward": gradients,
        "Adam and metrics": update,
    }


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training.update_profile"
    )
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--repetitions", type=int, default=5)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    size = SIZES[args.size]
    task = make_package_task(size, args.precision)
    batch = prepare_package(make_batch(size, fill=1.0))
    parts = make_cumulative_steps(task, batch)
    for function in parts.values():
        function()  # Compiles it.
    runs = [
        [
            mean_seconds(lambda f=f: tf.nest.flatten(f())[0].numpy(), 1)
            for f in parts.values()
        ]
        for _ in range(args.repetitions)
    ]
    medians = [statistics.median(times) for times in zip(*runs, strict=True)]
    print(f"| {args.size}, {args.precision} | s | share |")
    print("|---|---|---|")
    for name, before, after in zip(
        parts, [0.0, *medians], medians, strict=False
    ):
        share = (after - before) / medians[-1]
        print(f"| {name} | {after - before:.3f} | {share:.0%} |")
    print(f"| update | {medians[-1]:.3f} | 100% |")


if __name__ == "__main__":
    main()
