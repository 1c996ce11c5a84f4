"""Apache Beam pipeline that translates shards and writes files."""

import gzip
import pathlib
import re
from collections.abc import Iterable, Sequence

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.shared import Shared

from command_line.errors import UserError
from translate.bulk.invalid_lines import TRUNCATED, translate_shard
from translate.bulk.shards import Shard, create, read_shard
from translate.loading import choose_languages, load_export

# Beam's default runner downloads a program first.
DEFAULT_RUNNER = "--runner=FnApiRunner"
COUNTS = "lines", "empty", "cut"
# Runners report an error of a worker as a text with a traceback.
USER_ERROR_PATTERN = re.compile(
    rf"{UserError.__module__}\.UserError: (.*?)(?: \[while|$)"
)


class TranslateShard(beam.DoFn):
    """Writes the translation of a shard, and the faults of its lines.

    The export is at the same path on each worker; `output` is the folder of shards,
    and `codes` are those of source and target language, or `""`.
    """

    def __init__(
        self,
        export_dir: pathlib.Path,
        version: int,
        output: str,
        batch_tokens: int,
        codes: Sequence[str] = ("", ""),
    ):
        self._export = {"export_dir": export_dir, "version": version}
        self._output = output
        self._batch_tokens, self._codes = batch_tokens, codes
        self._model = Shared()  # One for each process, shared by its threads.

    def setup(self):
        runtime = self._model.acquire(lambda: load_export(**self._export))
        self._runtime = choose_languages(runtime, *self._codes)

    def process(self, shard: Shard):
        path = FileSystems.join(self._output, f"{shard.name}.gz")
        if FileSystems.exists(path):  # Beam may process a shard twice.
            return
        results = translate_shard(self._runtime, read_shard(shard), self._batch_tokens)
        write_invalid_lines(shard, results, self._output)
        # Without name and time, equal lines give equal bytes.
        with (
            create(path) as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        ):
            packed.writelines(text + b"\n" for text, _ in results)
        faults = [fault for _, fault in results if fault]
        cut = faults.count(TRUNCATED)
        for name, count in zip(
            COUNTS, (len(results), len(faults) - cut, cut), strict=True
        ):
            Metrics.counter(TranslateShard, name).inc(count)


def write_invalid_lines(
    shard: Shard, results: Iterable[tuple[bytes, str | None]], output: str
) -> None:
    """Writes a TSV file of file, line and fault, if there are any faults."""
    path = FileSystems.join(output, f"{shard.name}.faults.tsv")
    rows = [
        f"{shard.path}\t{number}\t{fault}\n".encode()
        for number, (_, fault) in enumerate(results, start=shard.first)
        if fault
    ]
    if rows:
        with create(path) as file:
            file.writelines(rows)
    elif FileSystems.exists(path):  # Left over from a run that was killed.
        FileSystems.delete([path])


def make_pipeline(flags: list[str]) -> beam.Pipeline:
    """Makes an empty pipeline from Beam's options.

    Raises:
        UserError: If Beam does not have the runner.
    """
    try:
        return beam.Pipeline(options=PipelineOptions([DEFAULT_RUNNER, *flags]))
    except (AttributeError, ImportError, ValueError) as error:
        raise UserError(
            f"--runner must be one that Beam has. Received: {error}"
        ) from None


def run(
    pipeline: beam.Pipeline, shards: list[Shard], translate: TranslateShard
) -> dict[str, int]:
    """Runs the pipeline over shards; returns the `COUNTS`.

    Raises:
        UserError: If a worker raises one.
    """
    (
        pipeline
        | beam.Create(shards)
        | beam.Reshuffle()  # Otherwise one worker would get all shards.
        | beam.ParDo(translate)
    )
    try:
        result = pipeline.run()
        result.wait_until_finish()
    except Exception as error:  # Each runner raises its own kinds.
        if refused := USER_ERROR_PATTERN.search(str(error)):
            raise UserError(refused[1]) from error
        raise
    counters = result.metrics().query(MetricsFilter().with_namespace(TranslateShard))[
        "counters"
    ]
    found = {each.key.metric.name: each.result for each in counters}
    return {name: found.get(name) or 0 for name in COUNTS}
