"""Opens data sets of Hugging Face's `datasets`, an extra: of the Hub or a folder."""

import functools
import pathlib
from collections.abc import Iterator

from command_line.errors import UserError, first_line, require_extra
from train.data.formats.language_codes import require_both
from train.data.formats.pair_file import ReadPairs
from train.data.formats.parquet import BATCH, find_columns, read_columns


def open_set(
    name: str, split: str, codes: tuple[str | None, str | None]
) -> tuple[ReadPairs, list[pathlib.Path]]:
    """Returns the pairs of a split, and the files that hold them.

    The name is `OWNER/NAME` or `OWNER/NAME/CONFIG`, which `@REVISION` may follow;
    or a folder that `save_to_disk` wrote or `load_dataset` reads. Unless saved, the
    split may be a part, such as `train[:99%]`.
    """
    require_both(codes, f"hf:{name}")
    with require_extra("--dataset hf:NAME", "datasets"):
        import datasets
    try:
        data, commit = load_split(datasets, name, split)
    except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
        raise UserError(
            f"--dataset must be a set that `datasets` loads, with the split {split}. "
            f"Received: hf:{name}: {first_line(error)}"
        ) from None
    columns = find_columns(data.features.arrow_schema, codes, f"hf:{name}")
    title = f"hf:{name} {split} {data._fingerprint}"
    pairs = ReadPairs(title, codes, functools.partial(read_set, data, columns), commit)
    return pairs, [pathlib.Path(file["filename"]) for file in data.cache_files]


def load_split(datasets, name: str, split: str):
    """Returns a split, and the commit of the set or the fingerprint of its data."""
    folder = pathlib.Path(name)
    if (folder / "dataset_dict.json").exists() or (folder / "state.json").exists():
        saved = datasets.load_from_disk(name)
        splits = saved if isinstance(saved, dict) else {"train": saved}
        if split not in splits:
            raise ValueError(f"its splits are {', '.join(splits)}")
        return splits[split], splits[split]._fingerprint
    path, _, revision = (name, "", "") if folder.is_dir() else name.partition("@")
    owner, *rest = [path] if folder.is_dir() else path.split("/", 2)
    repository, config = "/".join([owner, *rest[:1]]), "".join(rest[1:])
    builder = datasets.load_dataset_builder(
        repository, config or None, revision=revision or None
    )
    builder.download_and_prepare()
    return builder.as_dataset(split), builder.hash


def read_set(data, columns: list[str]) -> Iterator[tuple[str, str]]:
    for table in data.with_format("arrow").iter(BATCH):
        yield from read_columns(table, columns)
