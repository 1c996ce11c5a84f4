"""Repeats tables of the paper, beside the paper's numbers."""

import argparse
import sys

from command_line.errors import exit_on_user_error
from paper import table2
from paper.table3 import __main__ as table3
from train.loop import signals


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m train.reproduce", description=__doc__
    )
    tables = parser.add_subparsers(required=True, metavar="table", dest="table")
    costs = tables.add_parser(
        "table2",
        help="training cost in FLOPs, of any preset on any hardware",
        description=table2.__doc__,
    )
    table2.add_arguments(costs)
    rows = tables.add_parser(
        "table3",
        help="train variations of the Transformer, scaled to a budget",
        description=table3.__doc__,
        epilog="All other options are those of python -m train, and the same "
        "for all rows: the corpus, --batch-tokens, --warmup-steps, ...",
        allow_abbrev=False,
    )
    table3.add_arguments(rows)
    return parser


def parse_arguments(
    argv: list[str] | None = None,
) -> tuple[argparse.Namespace, list[str]]:
    """Returns the options of a table, and what is left for its trainings."""
    parser = make_parser()
    args, rest = parser.parse_known_args(argv)
    if rest and args.table == "table2":
        parser.error(f"table2 trains nothing. Received: {rest[0]}")
    return args, rest


def main(argv: list[str] | None = None) -> None:
    args, rest = parse_arguments(argv)
    with exit_on_user_error():
        if args.table == "table2":
            table2.run(args)
        else:
            table3.run(args, rest)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # Someone follows a log.
    with signals.exit_at_once():
        main()
