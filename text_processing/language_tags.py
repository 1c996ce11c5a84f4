"""Subwords that tell a model of several languages which ones it translates."""

import dataclasses
import difflib

from command_line.errors import UserError

MAX_LISTED = 10  # Of more languages those with similar codes are listed.


@dataclasses.dataclass(frozen=True)
class LanguageTags:
    """The tags of a model of several languages, as `arguments.json` holds them.

    A tag is one subword of the vocabulary. Where the model learned with
    `python -m train`, the tag of the target's language is first in the source
    (Johnson et al. 2017). M2M-100 and NLLB have that of the source's language
    there, and each translation begins with that of its own.

    Attributes:
        source_tags: Dict from the code of a language to the tag before sources
            in it; empty if the source's language has none.
        target_tags: Dict from the code of a language to the tag of translations
            into it.
        is_forced: Whether translations begin with their tag; otherwise it is
            first in the source.
    """

    source_tags: dict[str, str]
    target_tags: dict[str, str]
    is_forced: bool = False

    def find(self, source: str, target: str) -> tuple[list[str], list[str]]:
        """Returns the tags before a source, and those that its translation begins with.

        Raises:
            UserError: If the model lacks a language; it names similar codes.
        """
        tags = self.source_tags
        before = [find_code(tags, source, "source")] if tags else []
        tag = find_code(self.target_tags, target, "target")
        return (before, [tag]) if self.is_forced else ([*before, tag], [])

    def complete(self, source: str, target: str) -> tuple[str, str]:
        """Returns two codes; one that is `""` is the only one of its side.

        Raises:
            UserError: If the model lacks a language; it names similar codes.
        """
        source, target = (
            next(iter(tags)) if len(tags) == 1 and not code else code
            for tags, code in ((self.source_tags, source), (self.target_tags, target))
        )
        self.find(source, target)
        return source, target

    def required_inputs(self) -> list[str]:
        """Returns the inputs by which a request must name one of several languages."""
        sides = {"source": self.source_tags, "target": self.target_tags}
        return [f"{side}_language" for side, tags in sides.items() if len(tags) > 1]

    def example_inputs(self, index: int) -> dict[str, str]:
        """Returns the languages of an example request; the indices visit all codes."""
        sides = {"source": self.source_tags, "target": self.target_tags}
        return {
            f"{side}_language": [*tags][index % len(tags)]
            for side, tags in sides.items()
            if tags
        }

    def narrowed(self, source: str, target: str) -> "LanguageTags":
        """Returns the tags of these languages only; `""` stands for all of a side.

        Raises:
            UserError: If the model lacks a language; it names similar codes.
        """
        sides = (
            (self.source_tags, source, "source"),
            (self.target_tags, target, "target"),
        )
        found = [
            {code: find_code(tags, code, side)} if code and tags else tags
            for tags, code, side in sides
        ]
        return dataclasses.replace(self, source_tags=found[0], target_tags=found[1])


def find_code(tags: dict[str, str], code: str, side: str) -> str:
    if code not in tags:
        near = sorted(tags)
        if len(tags) > MAX_LISTED:
            near = difflib.get_close_matches(code, tags, n=5, cutoff=0.5) or near[:5]
        others = len(tags) - len(near)
        more = f" and {others} others" if others else ""
        raise UserError(
            f"the {side} language must be one of the model: {', '.join(near)}{more}. "
            f"Received: {code or f'no --{side}-language'}"
        )
    return tags[code]
