"""Translation sets of TensorFlow Datasets.

The package is imported when a set is opened, since the import takes seconds.
"""

import functools
import hashlib
import json
import logging
import pathlib
from collections.abc import Iterator

from command_line.errors import UserError
from command_line.text_files import CHUNK
from train.data.corpus import Corpus, digest_of

BATCH = 1_024


class TfdsPairs(Corpus):
    """A split of a translation set.

    Args:
        builder: The set's `tfds.core.DatasetBuilder`, or a `TranslateFolder`.
        split: Its name, such as `"train"`, or a part of it: `"train[:99%]"`.
        source_language: One of the set's two languages, or `None` for the
            first that it names.

    Raises:
        UserError: If the data is not on disk (training downloads nothing), if
            the set has no such split or language, or if it does not have two
            languages.
    """

    def __init__(self, builder, split: str, source_language: str | None = None):
        self._builder = builder
        self._split = split
        self._languages = find_languages(builder, source_language)
        try:
            self._open()
        except AssertionError:  # TFDS raises this error if it has no data.
            raise UserError(missing_data_error(builder)) from None
        except (KeyError, ValueError):
            raise UserError(
                f"the splits of {builder.name} are "
                f"{', '.join(builder.info.splits)} (--train-split, "
                "--validation-split); a part of one is written as "
                f"'train[:99%]'. Received: {split!r}"
            ) from None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        number = 1
        for batch in self._open().batch(BATCH).as_numpy_iterator():
            sides = [batch[language].tolist() for language in self._languages]
            for pair in zip(*sides, strict=True):
                try:
                    source, target = (text.decode() for text in pair)
                except UnicodeDecodeError as error:
                    raise UserError(
                        f"text must be UTF-8. Received: pair {number} of "
                        f"{self._builder.name}, {self._split}: {error}"
                    ) from None
                yield source, target
                number += 1

    def _open(self):
        return self._builder.as_dataset(split=self._split, shuffle_files=False)

    def languages(self) -> tuple[str, str]:
        return tuple(self._languages)

    @functools.cached_property
    def _scan(self) -> tuple[int, str]:
        """Reads the split's files, or its examples if it has no files."""
        files = self.files()
        if not files:
            count, text = super()._scan
            return count, digest_of(f"{self._split} {text}")
        digest = hashlib.sha256(json.dumps([self._split, *self._languages]).encode())
        for path in files:
            with path.open("rb") as file:
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
        count = self._builder.info.splits[self._split].num_examples
        return count, digest.hexdigest()

    def __repr__(self) -> str:
        return f"{self._builder.info.full_name} {self._split} {self._languages}"

    def files(self) -> list[pathlib.Path]:
        """Returns the files of the split, if it has some."""
        if not self._builder.info.splits:
            return []
        names = sorted(self._builder.info.splits[self._split].filenames)
        paths = [pathlib.Path(self._builder.data_dir, name) for name in names]
        return paths if all(path.exists() for path in paths) else []


def find_languages(builder, source_language: str | None) -> list[str]:
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
    if source_language is None:
        return list(languages)
    if source_language not in languages:
        raise UserError(
            f"--source-language must be {' or '.join(languages)} for "
            f"{builder.name}. Received: {source_language}"
        )
    return sorted(languages, key=lambda name: name != source_language)


def find_builder(name: str, data_dir: pathlib.Path | None):
    """Returns the builder of a set, such as `"wmt14_translate/de-en"`."""
    # The representation of a builder shows its internals.
    logging.getLogger("absl").setLevel(logging.ERROR)
    import tensorflow_datasets as tfds

    try:
        return tfds.builder(name, data_dir=data_dir)
    except ValueError as error:
        reason = " ".join(str(error).split()[:25]).rstrip(".")
        raise UserError(
            f"TensorFlow Datasets has no such set: {reason}. "
            f"Received: --dataset tfds:{name}"
        ) from None


def missing_data_error(builder) -> str:
    """Returns the error for missing data, with the command to download it."""
    folder = pathlib.Path(builder.data_dir)
    name = "/".join(builder.info.full_name.split("/")[:-1])
    root = folder.parents[name.count("/") + 1]
    return (
        f"the data of tfds:{name} is not in {folder}. Where there is a network "
        'run once: python -c "import tensorflow_datasets as tfds; '
        f"tfds.builder('{name}', data_dir='{root}').download_and_prepare()\""
        "; a copy of that folder elsewhere is named by --data-dir"
    )
