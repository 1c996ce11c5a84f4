"""Tests of `train.data.tfds_pairs`, through TFDS's own builders."""

import importlib.resources
import importlib.resources.abc
import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds

from command_line.errors import UserError
from train.data.corpus_loading import open_corpus
from train.data.tfds_pairs import TfdsPairs

TEXT = {
    "en.train.txt": "A cat.\nTwo cats.\n",
    "de.train.txt": "Eine Katze.\nZwei Katzen – süß.\n",
    "en.validation.txt": "A house.\n",
    "de.validation.txt": "Ein Haus.\n",
}


def make_folder(path, **changes):
    for name, text in {**TEXT, **changes}.items():
        (path / name).write_text(text, encoding="utf-8")
    return tfds.folder_dataset.TranslateFolder(str(path))


def test_the_digest_sees_text_split_and_direction(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    builder = make_folder(tmp_path / "one")
    other = make_folder(tmp_path / "other", **{"en.train.txt": "A cat.\nTwo dogs.\n"})

    digests = [
        TfdsPairs(builder, "train", "en").digest(),
        TfdsPairs(builder, "train", "de").digest(),
        TfdsPairs(builder, "validation", "en").digest(),
        TfdsPairs(other, "train", "en").digest(),
    ]

    assert len(set(digests)) == 4
    assert TfdsPairs(builder, "train", "en").digest() == digests[0]
    assert len(TfdsPairs(builder, "train", "en")) == 2


def test_reads_a_set_that_was_prepared_and_hashes_its_files(tmp_path, monkeypatch):
    # TFDS 4.9.10 needs this package and does not ask pip for it.
    monkeypatch.setitem(sys.modules, "importlib_resources", importlib.resources)
    # The real builder writes and reads its files; only its text is ours.
    builder = tfds.builder("ted_hrlr_translate/pt_to_en", data_dir=tmp_path)
    text = [{"pt": f"um {i}", "en": f"one {i}"} for i in range(10)]
    generate = {"train": enumerate(text), "validation": enumerate(text[:2])}
    monkeypatch.setattr(builder, "_split_generators", lambda _: generate)
    builder.download_and_prepare()

    pairs = open_corpus(
        "tfds:ted_hrlr_translate/pt_to_en",
        "train[:60%]",
        tmp_path,
        ("en", "pt"),
        tmp_path,
    )
    read = set(pairs)
    assert read < {(f"one {i}", f"um {i}") for i in range(10)}
    assert len(read) == 6
    monkeypatch.setattr(TfdsPairs, "__iter__", None)

    assert len(pairs) == 6
    assert len(pairs.digest()) == 64


def test_without_data_one_line_says_how_to_get_it(tmp_path):
    with pytest.raises(UserError) as error:
        open_corpus("tfds:wmt14_translate/de-en", "train", tmp_path, data_dir=tmp_path)

    message = str(error.value)
    assert f"tfds:wmt14_translate/de-en is not in {tmp_path}/wmt14" in message
    assert f"tfds.builder('wmt14_translate/de-en', data_dir='{tmp_path}')" in (message)
    assert "\n" not in message


def test_refuses_splits_and_languages_that_are_not_there(tmp_path):
    builder = make_folder(tmp_path)

    with pytest.raises(UserError, match="train, validation .*'test'"):
        TfdsPairs(builder, "test")
    with pytest.raises(UserError, match="must be de or en .*Received: fr"):
        TfdsPairs(builder, "train", "fr")


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
        open_corpus(name, "train", tmp_path, data_dir=tmp_path)

    assert "\n" not in str(error.value)


def test_text_that_is_no_utf_8_is_refused(tmp_path, monkeypatch):
    pairs = TfdsPairs(make_folder(tmp_path), "train", "en")
    raw = np.array([b"ok", b"a\xff"], object)
    dataset = type("Set", (), {"batch": lambda self, _: self})()
    dataset.as_numpy_iterator = lambda: [{"en": raw, "de": raw}]
    monkeypatch.setattr(pairs, "_open", lambda: dataset)

    with pytest.raises(UserError, match="must be UTF-8.*pair 2 of"):
        list(pairs)


def test_the_target_language_is_the_other_one(tmp_path):
    with tfds.testing.mock_data(num_examples=3):
        folder = {"cache": tmp_path, "data_dir": tmp_path}
        name = "tfds:wmt14_translate/de-en"
        open_corpus(name, "train", languages=("en", "de"), **folder)
        with pytest.raises(UserError, match="must be en for .* de. Received: fr"):
            open_corpus(name, "train", languages=("de", "fr"), **folder)
