"""Translates with a folder that `python -m export --format litert` wrote.

It needs LiteRT, SentencePiece and NumPy; neither TensorFlow nor Keras.

    translator = litert_translator.Translator("exports/demo/1")
    translator.translate(["The cat sees a dog."])
"""

from litert_translator.translator import Alignment, Translation, Translator

__all__ = ["Alignment", "Translation", "Translator"]
