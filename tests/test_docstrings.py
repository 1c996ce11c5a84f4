"""Every public name is documented, and the examples do what they say."""

import ast
import doctest
import importlib
import pathlib
import pkgutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_transformer
from tests.helpers.other_systems.converted_runs import train_spm

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(
        keras_transformer.__path__, "keras_transformer."
    )
]


EXAMPLES = [
    pytest.param(module, test.examples, id=test.name)
    for module in MODULES
    for test in doctest.DocTestFinder().find(module)
    if test.examples
]


def evaluate(source, names):
    try:
        expression = compile(source, "<example>", "eval")
    except SyntaxError:
        exec(compile(source, "<example>", "exec"), names)
        return None
    return eval(expression, names)


def check_value(value, want):
    """Compares a value, as an array, with the list or number of the docstring."""
    wanted = np.asarray(ast.literal_eval(want))
    actual = keras.tree.map_structure(np.asarray, value)
    actual = np.asarray(actual)
    assert actual.shape == wanted.shape
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(actual, wanted, rtol=1e-5)
    else:
        np.testing.assert_array_equal(actual, wanted)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Holds the `tokenizer.model` that the tokenizer's example reads."""
    lines = ["A cat.", "A cat sat.", "That is a mat."]
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": 3}
    model = train_spm(lines, 300, model_type="bpe", byte_fallback=True, **ids)
    folder = tmp_path_factory.mktemp("examples")
    (folder / "tokenizer.model").write_bytes(model)
    return folder


@pytest.mark.parametrize(("module", "examples"), EXAMPLES)
def test_examples_do_what_they_say(module, examples, folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {
        **vars(module),
        "keras": keras,
        "keras_transformer": keras_transformer,
        "np": np,
        "pathlib": pathlib,
        "tf": tf,
    }
    for example in examples:
        value = evaluate(example.source, names)
        if example.want:
            check_value(value, example.want)
        else:  # Python would print any other value.
            assert value is None, example.source


@pytest.mark.parametrize("name", keras_transformer.__all__)
def test_public_names_exist_and_are_documented(name):
    value = getattr(keras_transformer, name)
    if name == "PRESETS":  # A dict: each of its values says what it is.
        assert all(preset.description for preset in value.values())
    else:
        bases = getattr(value, "__mro__", [value])[1:]
        assert value.__doc__ not in {None, *(base.__doc__ for base in bases)}


def test_other_names_do_not_exist():
    with pytest.raises(AttributeError, match=r"keras_transformer.*'beam'"):
        _ = keras_transformer.beam
