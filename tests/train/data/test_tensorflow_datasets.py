"""Sets of TensorFlow Datasets, made and read by its own builders."""

import importlib.resources
import importlib.resources.abc
import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds

from command_line.errors import UserError
from train.data.corpus_loading import open_corpus
from train.data.formats.pair_file import ReadPairs
from train.data.formats.tensorflow_datasets import open_split

TEXT = {
    "en.train.txt": "A cat.\nTwo cats.\n",
    "de.train.txt": "Eine Katze.\nZwei Katzen – süß.\n",
    "en.validation.txt": "A house.\n",
    "de.validation.txt": "Ein Haus.\n",
}


@pytest.fixture(autouse=True)
def data_dir(tmp_path, monkeypatch):
    """What `TFDS_DATA_DIR` is when the package is imported."""
    monkeypatch.setattr("tensorflow_datasets.core.constants.DATA_DIR", str(tmp_path))


def make_folder(path, **changes):
    for name, text in {**TEXT, **changes}.items():
        (path / name).write_text(text, encoding="utf-8")
    return tfds.folder_dataset.TranslateFolder(str(path))


def read(builder, split, *languages):
    pairs, _ = open_split(builder, split, (*languages, None, None)[:2])
    return pairs


def test_the_digest_sees_text_split_and_direction(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    builder = make_folder(tmp_path / "one")
    other = make_folder(tmp_path / "other", **{"en.train.txt": "A cat.\nTwo dogs.\n"})

    pairs = [
        read(builder, "train", "en"),
        read(builder, "train", "de"),
        read(builder, "validation", "en"),
        read(other, "train", "en"),
    ]

    assert len({corpus.digest() for corpus in pairs}) == 4
    assert read(builder, "train", "en").digest() == pairs[0].digest()
    assert list(pairs[1]) == [pair[::-1] for pair in pairs[0]]
    assert pairs[1].languages() == ("de", "en")


def test_a_set_that_was_prepared_is_scanned_once(tmp_path, monkeypatch):
    # TFDS 4.9.10 needs this package and does not ask pip for it.
    monkeypatch.setitem(sys.modules, "importlib_resources", importlib.resources)
    # The real builder writes and reads its files; only its text is ours.
    builder = tfds.builder("ted_hrlr_translate/pt_to_en")
    text = [{"pt": f"um {i}", "en": f"one {i}"} for i in range(10)]
    generate = {"train": enumerate(text), "validation": enumerate(text[:2])}
    monkeypatch.setattr(builder, "_split_generators", lambda _: generate)
    builder.download_and_prepare()

    name = "tfds:ted_hrlr_translate/pt_to_en"
    arguments = name, "train[:60%]", tmp_path, ("en", "pt")
    pairs = open_corpus(*arguments)
    assert set(pairs) < {(f"one {i}", f"um {i}") for i in range(10)}
    assert len(set(pairs)) == 6
    digest = pairs.digest()
    monkeypatch.setattr(ReadPairs, "__iter__", None)

    again = open_corpus(*arguments)
    assert (len(again), again.digest()) == (6, digest)
    with pytest.raises(TypeError):  # Another part is read from the same files.
        len(open_corpus(arguments[0], "train[60%:]", *arguments[2:]))


def test_without_data_one_line_says_how_to_get_it(tmp_path):
    with pytest.raises(UserError) as error:
        open_corpus("tfds:wmt14_translate/de-en", "train", tmp_path)

    message = str(error.value)
    assert f"tfds:wmt14_translate/de-en is not in {tmp_path}/wmt14" in message
    assert "tfds.builder('wmt14_translate/de-en').download_and_prep" in message
    assert "\n" not in message


def test_refuses_splits_and_languages_that_are_not_there(tmp_path):
    builder = make_folder(tmp_path)

    with pytest.raises(UserError, match="train, validation .*'test'"):
        read(builder, "test")
    for languages in (("fr",), (None, "fr"), ("de", "fr"), ("de", "de")):
        with pytest.raises(UserError, match=f"must be (de|en) and .*{languages[-1]}"):
            read(builder, "train", *languages)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tfds:no_such_set", "no_such_set not found.*tfds:no_such_set"),
        ("tfds:wmt14_translate/xx-en", "BuilderConfig xx-en not found"),
        ("tfds:mnist", "text in two languages.*mnist with image, label"),
        ("wmt14", "demo, tfds:NAME/CONFIG or hf:.*Received: wmt14"),
    ],
)
def test_refuses_what_is_no_translation_set(name, message, tmp_path):
    with pytest.raises(UserError, match=message) as error:
        open_corpus(name, "train", tmp_path)

    assert "\n" not in str(error.value)


def test_text_that_is_no_utf_8_is_refused(tmp_path, monkeypatch):
    builder = make_folder(tmp_path)
    raw = np.array([b"ok", b"a\xff"], object)
    dataset = type("Set", (), {"batch": lambda self, _: self})()
    dataset.as_numpy_iterator = lambda: [{"en": raw, "de": raw}]
    monkeypatch.setattr(builder, "as_dataset", lambda **_: dataset)

    with pytest.raises(UserError, match="train, pair 2, must be text in UTF-8"):
        list(read(builder, "train"))
