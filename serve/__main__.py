"""Serves translations over HTTP: LibreTranslate's API and a web page.

Needs `pip install '.[web]'`. By default it listens on this machine only. After
SIGTERM it answers the pending requests and exits. On SIGHUP it reads the models
and the file of keys anew.
"""

import argparse

from command_line.errors import UserError, exit_on_user_error
from command_line.options import add_options, read_options

try:
    from serve.options import ServeOptions
    from serve.server import run
except ImportError as error:
    with exit_on_user_error():
        raise UserError(
            f"python -m serve needs `pip install '.[web]'`. Received: {error}"
        ) from None


def parse_options(argv: list[str] | None = None) -> ServeOptions:
    parser = argparse.ArgumentParser(prog="python -m serve", description=__doc__)
    add_options(parser, ServeOptions)
    return read_options(parser.parse_args(argv), ServeOptions)


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_options(argv))


if __name__ == "__main__":
    main()
