"""Opens translation sets of TensorFlow Datasets.

The package is imported when a set is opened, since the import takes seconds.
"""

import functools
import logging
import pathlib
from collections.abc import Callable, Iterator

from command_line.errors import UserError
from train.data.formats.pair_file import ReadPairs

BATCH = 1_024


def open_set(
    name: str, split: str, languages: tuple[str | None, str | None]
) -> tuple[ReadPairs, list[pathlib.Path]]:
    """Returns the pairs of a set on disk, and their files (see `open_split`)."""
    return open_split(find_builder(name), split, languages)


def open_split(
    builder, split: str, languages: tuple[str | None, str | None] = (None, None)
) -> tuple[ReadPairs, list[pathlib.Path]]:
    """Returns the pairs of a split of a builder, and the files that hold them, if any.

    Without codes of languages, the set goes from the first that it names to the
    other one. Data that is not on disk is refused: training downloads nothing.
    """
    codes = find_languages(builder, *languages)
    load = functools.partial(builder.as_dataset, split=split, shuffle_files=False)
    try:
        load()
    except AssertionError:  # TFDS raises this error if it has no data.
        raise UserError(missing_data_error(builder)) from None
    except (KeyError, ValueError):
        raise UserError(
            f"the splits of {builder.name} are {', '.join(builder.info.splits)} "
            "(--train-split, --validation-split); a part of one is written as "
            f"'train[:99%]'. Received: {split!r}"
        ) from None
    read = functools.partial(read_pairs, load, codes)
    pairs = ReadPairs(f"{builder.info.full_name} {split}", codes, read)
    return pairs, find_files(builder, split)


def read_pairs(load: Callable, codes: tuple[str, str]) -> Iterator[tuple[str, str]]:
    for batch in load().batch(BATCH).as_numpy_iterator():
        for pair in zip(*(batch[code] for code in codes), strict=True):
            # `ReadPairs` refuses the surrogates of bytes that are not UTF-8.
            yield tuple(text.decode(errors="surrogateescape") for text in pair)


def find_files(builder, split: str) -> list[pathlib.Path]:
    if not builder.info.splits:
        return []
    names = sorted(builder.info.splits[split].filenames)
    paths = [pathlib.Path(builder.data_dir, name) for name in names]
    return paths if all(path.exists() for path in paths) else []


def find_languages(builder, source: str | None, target: str | None) -> tuple[str, str]:
    """Returns the two keys of a set's examples, the source's first."""
    import tensorflow_datasets as tfds

    features = builder.info.features
    languages = builder.info.supervised_keys or tuple(sorted(features.keys()))
    if len(languages) != 2 or not all(
        isinstance(features[name], tfds.features.Text) for name in languages
    ):
        raise UserError(
            "a set must have text in two languages. "
            f"Received: {builder.name} with {', '.join(features.keys())}"
        )
    orders = languages, languages[::-1]
    for order in orders:
        if source in (None, order[0]) and target in (None, order[1]):
            return tuple(order)
    raise UserError(
        f"--source-language and --target-language must be {' and '.join(languages)}, "
        f"in either order, for {builder.name}. Received: {source} and {target}"
    )


def find_builder(name: str):
    """Returns the builder of a set, such as `"wmt14_translate/de-en"`."""
    # The representation of a builder shows its internals.
    logging.getLogger("absl").setLevel(logging.ERROR)
    import tensorflow_datasets as tfds

    try:
        return tfds.builder(name)
    except ValueError as error:
        reason = " ".join(str(error).split()[:25]).rstrip(".")
        raise UserError(
            f"TensorFlow Datasets has no such set: {reason}. "
            f"Received: --dataset tfds:{name}"
        ) from None


def missing_data_error(builder) -> str:
    """Returns the error for missing data, with the command to download it."""
    name = "/".join(builder.info.full_name.split("/")[:-1])
    return (
        f"the data of tfds:{name} is not in {builder.data_dir}. Where there is a "
        'network run once: python -c "import tensorflow_datasets as tfds; '
        f"tfds.builder('{name}').download_and_prepare()\""
        "; TFDS_DATA_DIR names another folder of sets"
    )
