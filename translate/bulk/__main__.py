"""Translates corpora, one sentence a line, with Apache Beam.

On one machine, or with Beam's options on many:

    --direct_num_workers=8 --direct_running_mode=multi_processing
    --runner=FlinkRunner --flink_master=HOST:PORT

Each file is cut into shards, and each shard becomes a file of the output
folder. Run again, it makes those that are not there.
"""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import logging
import pathlib
import sys
import time

from command_line import errors
from command_line.errors import exit_on_user_error, require_extra
from command_line.options import add_options, option, positive, read_options
from command_line.quiet_tensorflow import stderr_hidden_unless_error
from export.bundle.file_layout import list_files
from export.bundle.versions import EXPORT_DIR
from translate.line_batching import BatchOptions
from translate.loading import SOURCE_LANGUAGE, TARGET_LANGUAGE, find_export


@dataclasses.dataclass(frozen=True, kw_only=True)
class BulkOptions(BatchOptions):
    input: str = option(
        help="text files, plain or gzip; in quotes: 'text-*.en.gz'", metavar="PATTERN"
    )
    output: str = option(
        help="folder for FILE-00000-of-00017.gz and so on, and for what is "
        "wrong with which line: FILE-00000-of-00017.faults.tsv",
        metavar="FOLDER",
    )
    export_dir: pathlib.Path = option(**EXPORT_DIR)
    source_language: str = option("", **SOURCE_LANGUAGE)
    target_language: str = option("", **TARGET_LANGUAGE)
    shard_lines: int = option(10_000, "lines a shard", positive(int))


def parse_options(argv: list[str] | None = None) -> tuple[BulkOptions, list[str]]:
    """Returns the options of this command, and the remaining ones for Beam."""
    parser = argparse.ArgumentParser(
        prog="python -m translate.bulk",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="All other options are Beam's, which have underscores.",
    )
    add_options(parser, BulkOptions)
    args, flags = parser.parse_known_args(argv)
    # Beam ignores unknown options.
    for place, flag in enumerate(flags):
        name = flag.partition("=")[0]
        is_option = name.startswith("--")
        if (is_option and "-" in name[2:]) or not (is_option or place):
            parser.error(
                "must be an option of ours or of Beam's, and a pattern in "
                f"quotes. Received: {flag}"
            )
    return read_options(args, BulkOptions), flags


def check_beam() -> None:
    """Imports Apache Beam, or refuses to start without it.

    Hides Beam's warnings about cloud packages that are not installed.
    """
    logging.disable(logging.WARNING)
    try:
        with require_extra("translate.bulk", "bulk"):
            import apache_beam  # noqa: F401
    finally:
        logging.disable(logging.NOTSET)


def describe_model(folder: pathlib.Path) -> dict:
    """Returns the values that identify a version of an export."""
    files = json.dumps(list_files(folder), sort_keys=True).encode()
    return {"version": int(folder.name), "sha256": hashlib.sha256(files).hexdigest()}


def quiet_workers(flags: list[str]) -> contextlib.AbstractContextManager:
    """Hides the output of local workers, unless they fail."""
    # Other runners show no progress without their log.
    is_elsewhere = any(flag.startswith("--runner") for flag in flags)
    if is_elsewhere or errors.shows_tracebacks:
        return contextlib.nullcontext()
    return stderr_hidden_unless_error()


def run(options: BulkOptions, flags: list[str]) -> None:
    from translate.bulk import pipeline, shards

    beam_pipeline = pipeline.make_pipeline(flags)
    shards.check_file_system("--input", options.input)
    shards.check_file_system("--output", options.output)
    model = describe_model(find_export(options.export_dir))
    plan, inputs = [], {}
    for name, path in shards.find_inputs(options.input).items():
        cut, inputs[name] = shards.split_into_shards(path, name, options.shard_lines)
        plan += cut
    codes = [options.source_language, options.target_language]
    settings = {
        "model": model,
        "shard_lines": options.shard_lines,
        "batch_tokens": options.batch_tokens,
        "languages": codes,
    }
    shards.record_plan(options.output, settings, inputs)
    made = shards.list_finished(options.output)
    missing = [shard for shard in plan if shard.name not in made]
    print(
        f"{len(plan):,} shards, {len(plan) - len(missing):,} of them are there",
        file=sys.stderr,
    )
    if not missing:
        return
    started = time.monotonic()
    translate = pipeline.TranslateShard(
        options.export_dir,
        model["version"],
        options.output,
        options.batch_tokens,
        codes,
    )
    with quiet_workers(flags):
        counts = pipeline.run(beam_pipeline, missing, translate)
    shards.remove_temporary_files(options.output)
    seconds = time.monotonic() - started
    print(
        f"{counts['lines']:,} lines in {seconds:,.0f} s, "
        f"{counts['lines'] / seconds:,.1f} a second; {counts['empty']:,} were "
        f"left empty and {counts['cut']:,} cut: *.faults.tsv says why",
        file=sys.stderr,
    )


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        options, flags = parse_options(argv)
        check_beam()
        run(options, flags)


if __name__ == "__main__":
    main()
