"""Prints the script that completes commands and options in a shell."""

import argparse
import pkgutil

from command_line.launcher import COMMANDS
from command_line.options import add_options


def make_completion(shell: str) -> str:
    import shtab  # It comes with the extra `train`.

    parser = argparse.ArgumentParser(prog="keras-transformer")
    commands = parser.add_subparsers()
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(
            name, help=f"python -m {command.module}", conflict_handler="resolve"
        )
        for options in command.options:
            add_options(subparser, pkgutil.resolve_name(options))
    return shtab.complete(parser, shell)


def main() -> None:
    parser = argparse.ArgumentParser("keras-transformer completion")
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    print(make_completion(parser.parse_args().shell))


if __name__ == "__main__":
    main()
