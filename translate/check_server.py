"""Verifies that a TF Serving gives the answers that an export recorded.

The files of the export are checked as `export.check` does; then its sample
requests are sent to the server, and nothing is run here.
"""

import argparse
import dataclasses
import pathlib

from command_line.errors import exit_on_user_error
from command_line.options import add_options, option, part, read_options
from export.bundle.file_layout import SAVED_MODEL
from export.bundle.versions import EXPORT_DIR, find_version
from export.check import check_version, report
from translate.runtime.tf_serving import ClientOptions, connect


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckServerOptions:
    """Options of `python -m translate.check_server`."""

    export_dir: pathlib.Path = option(**EXPORT_DIR)
    version: int | None = option(None, "which one (default: the newest)", int)
    server: str = option(
        help="a running TF Serving, or https://HOST[:PORT][/PREFIX]",
        metavar="HOST:PORT",
    )
    client: ClientOptions = part("the client")


def run(options: CheckServerOptions) -> None:
    folder = find_version(options.export_dir, SAVED_MODEL, version=options.version)

    def connect_model(name):
        client = dataclasses.replace(
            options.client, model_name=options.client.model_name or name
        )
        return connect(options.server, client).ask

    report(check_version(folder, connect_model))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m translate.check_server", description=__doc__
    )
    add_options(parser, CheckServerOptions)
    with exit_on_user_error():
        run(read_options(parser.parse_args(argv), CheckServerOptions))


if __name__ == "__main__":
    main()
