"""Estimates the training speed of more GPUs from measured constants.

An update is computed, and then its gradients are summed over all devices; the
two do not overlap. Within a machine and between machines the sum is a ring,
in which a device sends `2 (n - 1) / n` times the gradients. The speed of the
input pipeline is measured, on one core; all other numbers are counted or given.
"""

import argparse
import statistics

from benchmarks.training.input_pipeline import make_pairs, plan_throughput
from keras_transformer import Transformer
from keras_transformer.presets import find_preset
from train.data.batch_plan import BatchPlan
from train.monitoring.cost_estimates import count_flops

LONGEST = 256


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training.scaling_estimate",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--preset", default="base")
    add("--vocabulary-size", type=int, default=37_000)
    add("--tokens", type=int, default=8_192, help="positions a side and GPU")
    add("--gpus", type=int, nargs="+", default=[1, 8, 64])
    add("--machine", type=int, default=8, help="GPUs of a machine")
    add("--flops", type=float, default=50e12, help="a second, sustained, a GPU")
    add("--link", type=float, default=100e9, help="bytes/s between its GPUs")
    add(
        "--networks",
        type=float,
        nargs="+",
        default=[1.25e9, 12.5e9],
        help="bytes/s between machines",
    )
    add("--pairs", type=int, default=200_000, help="of the measured input")
    return parser.parse_args(argv)


def ring_seconds(num_bytes: float, members: int, bandwidth: float) -> float:
    """Returns how long a ring all-reduce takes."""
    return 2 * (members - 1) / members * num_bytes / bandwidth


def main(argv: list[str] | None = None) -> None:
    args = parse_arguments(argv)
    model = Transformer.from_preset(
        find_preset(args.preset), args.vocabulary_size, sequence_length=LONGEST
    )
    model.build()
    plan = BatchPlan(make_pairs(args.pairs), args.tokens, seed=0)
    plan.batch(0)  # The first batch of a pass draws the order.
    steps = plan.batches_per_pass
    made = statistics.median(plan_throughput(plan, 0, steps) for _ in range(5))
    num_bytes = 4 * model.count_params()
    compute = count_flops(model, plan) / args.flops
    tokens = plan.tokens / steps
    print(f"all-reduced an update: {num_bytes / 1e6:,.0f} MB")
    print(f"computing {tokens:,.0f} tokens of both sides: {compute:.3f} s")
    print(f"batches, one core: {made / 1e6:,.0f} million tokens/s")
    print("| GPUs | network GB/s | all-reduce s | tokens/s | efficiency | cores |")
    print("|---|---|---|---|---|---|")
    for gpus in args.gpus:
        machines = -(-gpus // args.machine)
        for network in args.networks if machines > 1 else [None]:
            seconds = ring_seconds(num_bytes, min(gpus, args.machine), args.link)
            if network:
                seconds += ring_seconds(num_bytes, machines, network)
            speed = gpus * tokens / (compute + seconds)
            print(
                f"| {gpus} | {network / 1e9 if network else '-'} "
                f"| {seconds:.4f} | {speed:,.0f} "
                f"| {compute / (compute + seconds):.0%} "
                f"| {speed / machines / made:.2f} |"
            )


if __name__ == "__main__":
    main()
