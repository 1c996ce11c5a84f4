"""Loads a server, and looks for errors and leaks.

    python -m tests.load --export-dir exports/mine --minutes 30

`tests.helpers.server_load` says what is sent.
"""

import argparse
import json
import pathlib

import numpy as np

from tests.helpers.server_load import MAX_GROWTH, run_load


def parse_arguments(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m tests.load", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--export-dir", required=True, type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument(
        "--worst", type=int, default=2, help="clients with the largest requests"
    )
    parser.add_argument("--texts", type=int, default=200, help="distinct ones")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_arguments(argv)
    report = run_load(
        args.export_dir, 60 * args.minutes, args.clients, args.worst, args.texts
    )
    mebibytes = [round(bytes_ / 2**20) for _, bytes_ in report.memory]
    seconds = report.seconds or [float("nan")]
    print(
        json.dumps(
            {
                "minutes": args.minutes,
                "requests": report.requests,
                "texts": report.texts,
                "errors": len(report.errors),
                "wrong": len(report.wrong),
                "examples": report.errors[:5] + report.wrong[:20],
                "p50_seconds": round(np.percentile(seconds, 50), 3),
                "p99_seconds": round(np.percentile(seconds, 99), 3),
                "memory_mib": mebibytes[:: max(len(mebibytes) // 20, 1)],
                "growth_of_second_half": round(report.growth(), 4),
                "before_mib": report.before >> 20,
                "peak_mib": report.peak >> 20,
            },
            indent=2,
        )
    )
    # The memory of the largest requests varies.
    grows = not args.worst and report.growth() > MAX_GROWTH
    failed = report.errors or report.wrong or grows
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
