"""Loads an export with `litert_translator`, which needs no TensorFlow."""

import pathlib

from command_line.cpu_count import count_processors
from command_line.errors import require_extra
from command_line.quiet_tensorflow import stderr_hidden_unless_error
from text_processing.language_tags import LanguageTags


def import_translator():
    """Returns the module `litert_translator`.

    Raises:
        UserError: If what it needs is not installed.
    """
    with require_extra("the format litert", "litert"):
        import litert_translator
    return litert_translator


def load_translator(folder: pathlib.Path):
    """Returns the `litert_translator.Translator` of a version.

    Raises:
        UserError: If LiteRT is not installed.
    """
    translator = import_translator().Translator(folder, count_processors())
    languages = translator.settings["languages"]
    codes = LanguageTags(**languages).example_inputs(0) if languages else {}
    # The first interpreter of a process logs that it uses its CPU kernels.
    with stderr_hidden_unless_error():
        translator.for_languages(**codes).translate(["."])
    return translator
