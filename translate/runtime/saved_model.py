"""Runs a SavedModel in this process."""

import json
import pathlib

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

from command_line.errors import refuse_damage
from export.bundle.file_layout import BUNDLE
from export.bundle.graph_inspection import read_meta_graph
from export.model.signature_inputs import LANGUAGE_INPUTS
from text_processing.language_tags import LanguageTags
from translate.runtime.bounded_batches import count_batches
from translate.runtime.runtime import SIGNATURE, Runtime


class SavedModelRuntime(Runtime):
    """A version of an export as a SavedModel."""

    def __init__(self, folder: pathlib.Path):
        self._model = tf.saved_model.load(str(folder))
        self.signatures = self._model.signatures
        self._defaults = {
            name: {k: tf.make_ndarray(v) for k, v in signature.defaults.items()}
            for name, signature in read_meta_graph(folder).signature_def.items()
        }
        self.language_inputs = []
        if SIGNATURE in self.signatures:
            inputs = self.signatures[SIGNATURE].structured_input_signature[1]
            self.language_inputs = [name for name in inputs if name in LANGUAGE_INPUTS]
        path = folder / BUNDLE
        if path.exists():  # Another program's SavedModel has none.
            with refuse_damage(path):
                description = json.loads(path.read_text("utf-8"))
                self.language = description["settings"]["source_language"]
                if languages := description["languages"]:
                    self.languages = LanguageTags(**languages)
        self.in_flight = count_batches()

    def ask(
        self, signature: str, inputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        self.require(signature)
        defaults = self._defaults.get(signature, {})
        given = {**defaults, **self.with_languages(inputs)}
        outputs = self.signatures[signature](
            **{name: tf.constant(value) for name, value in given.items()}
        )
        return {name: value.numpy() for name, value in outputs.items()}
