"""Griffe extension that parses the sections of Keras-style docstrings.

Keras says `Example:` and `Call arguments:` where griffe, which reads docstrings
for mkdocs, knows `Examples:` and `Other arguments:`.
"""

import griffe

SECTIONS = {
    "Example:": "Examples:",
    "Call arguments:": "Other arguments: Call arguments",
}


class KerasSections(griffe.Extension):
    """Renames the sections; their order and text stay."""

    def on_object(self, *, obj: griffe.Object, **_) -> None:
        if obj.docstring:
            lines = obj.docstring.value.split("\n")
            obj.docstring.value = "\n".join(SECTIONS.get(line, line) for line in lines)
