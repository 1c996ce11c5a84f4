"""Reads Parquet, and tables of Apache Arrow."""

import pathlib
from collections.abc import Iterator

from command_line.errors import UserError, describe_error
from train.data.formats.language_codes import require_codes

BATCH = 1_000  # Rows.
CHUNK = 1 << 20  # Bytes read at a time.


def read_pairs(
    path: pathlib.Path, source: str, target: str
) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a struct `translation`, or of two columns."""
    import pyarrow
    from pyarrow import parquet

    count = 0
    try:
        # With `pre_buffer` all of the file would stay in memory.
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=CHUNK) as file:
            columns = find_columns(file.schema_arrow, (source, target), path)
            for batch in file.iter_batches(BATCH, columns=columns):
                yield from read_columns(batch, columns)
                count += len(batch)
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(
            f"{path} must be whole. Received: after row {count}: "
            f"{describe_error(error)}"
        ) from None


def find_columns(schema, codes: tuple[str, str], where: object) -> list[str]:
    """Returns the columns of both languages: `en`, or `translation.en`."""
    is_there = "translation" in schema.names
    fields = getattr(schema.field("translation").type, "fields", ()) if is_there else ()
    if not fields:
        return require_codes(codes, schema.names, where)
    there = [field.name for field in fields]
    return [f"translation.{name}" for name in require_codes(codes, there, where)]


def read_columns(table, columns: list[str]) -> Iterator[tuple[str, str]]:
    """Yields the rows of two columns of a table."""
    from pyarrow import compute

    sides = []
    for name in columns:
        column, *field = name.split(".")
        side = table[column]
        sides.append(compute.struct_field(side, field) if field else side)
    return zip(*(side.to_pylist() for side in sides), strict=True)
