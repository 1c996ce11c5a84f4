"""The languages of a request: its inputs, as ids of their tags in the graph."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import NamedTuple

import tensorflow as tf

from command_line.errors import UserError
from export.model.request_validation import after_check, with_equal_rows
from export.model.signature_inputs import LANGUAGE_INPUTS, spec
from keras_transformer import SubwordTokenizer
from text_processing.language_tags import LanguageTags


class Tags(NamedTuple):
    """Ids of the tags of each text; `None` of a model without languages."""

    source: tf.Tensor | None = None  # (B, n), first in the source
    target: tf.Tensor | None = None  # (B, m), first in the translation


class Language(NamedTuple):
    """One of the two languages of a text."""

    name: str  # Of the input, which there is for two codes or more.
    codes: list[str]
    ids: list[int]  # Those of the tags.
    is_forced: bool  # Whether the tag is first in the translation.


class RequestLanguages:
    """Adds the languages of a model to its signatures.

    While a signature is traced, `tags` are those of its texts.

    Attributes:
        num_source: Int, tags before a source.
        num_target: Int, tags that a translation begins with.
    """

    def __init__(self, languages: LanguageTags | None, tokenizer: SubwordTokenizer):
        self._languages, self.tags = [], Tags()
        if languages:
            tags = languages.source_tags, languages.target_tags
            is_forced = False, languages.is_forced
            self._languages = [
                Language(name, [*tags], find_ids(tags, tokenizer, forced), forced)
                for name, tags, forced in zip(
                    LANGUAGE_INPUTS, tags, is_forced, strict=True
                )
                if tags
            ]
        self.num_target = sum(each.is_forced for each in self._languages)
        self.num_source = len(self._languages) - self.num_target

    @property
    def inputs(self) -> list[tf.TensorSpec]:
        """The inputs that a signature needs besides its own."""
        return [spec(each.name) for each in self._languages if len(each.codes) > 1]

    def add_inputs(self, method: Callable) -> Callable:
        """Returns the method of a signature with `inputs` before its own."""
        if not self._languages:
            return method
        names = [each.name for each in self.inputs]
        parameters = inspect.signature(method).parameters

        def answer(*inputs):
            given = dict(zip([*names, *parameters], inputs, strict=True))
            rows = [*names, next(iter(parameters))]
            checked = with_equal_rows(**{name: given[name] for name in rows[::-1]})
            given |= dict(zip(rows[::-1], checked, strict=True))
            count = tf.shape(checked[0])[0]
            none = tf.zeros([count, 0], tf.int32)
            tags = Tags(
                *(
                    tf.concat([none, *(read(x, given, count) for x in some)], axis=1)
                    for some in (
                        [each for each in self._languages if not each.is_forced],
                        [each for each in self._languages if each.is_forced],
                    )
                )
            )
            with self.using(tags):
                return method(**{name: given[name] for name in parameters})

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        added = [inspect.Parameter(name, kind) for name in names]
        answer.__signature__ = inspect.Signature([*added, *parameters.values()])
        return answer

    @contextlib.contextmanager
    def using(self, tags: Tags) -> Iterator[None]:
        """Replaces the tags while the context is open."""
        before, self.tags = self.tags, tags
        try:
            yield
        finally:
            self.tags = before

    def of_rows(self, rows: tf.Tensor) -> contextlib.AbstractContextManager:
        """Replaces the tags by those of these rows while the context is open."""
        return self.using(
            Tags(*(x if x is None else tf.gather(x, rows) for x in self.tags))
        )


def find_ids(
    tags: dict[str, str], tokenizer: SubwordTokenizer, of_targets: bool
) -> list[int]:
    """Returns the ids of tags, which must be subwords of the vocabulary."""
    if of_targets:
        pieces = tokenizer.id_to_piece(tf.range(tokenizer.vocabulary_size))
    else:
        size = tokenizer.source_vocabulary_size
        pieces = tokenizer.source_id_to_piece(tf.range(size))
    places = {piece.decode(): i for i, piece in enumerate(pieces.numpy())}
    if missing := [tag for tag in tags.values() if tag not in places]:
        raise UserError(
            "the tags of a model's languages must be subwords of its vocabulary. "
            f"Received: {', '.join(missing[:3])}"
        )
    return [places[tag] for tag in tags.values()]


def read(language: Language, inputs: dict[str, tf.Tensor], count) -> tf.Tensor:
    """Returns the ids `(B, 1)` of a language's tags.

    An unknown code fails with one line, which lists those with its first letter.
    """
    ids = tf.constant(language.ids, tf.int32)
    if len(language.codes) == 1:
        return tf.tile(ids[None], [count, 1])
    codes, known = inputs[language.name], tf.constant(language.codes)
    matches = codes[:, None] == known
    is_known = tf.reduce_any(matches, axis=1)
    wrong = tf.concat([tf.boolean_mask(codes, ~is_known), [""]], axis=0)[0]
    is_near = tf.strings.substr(known, 0, 1) == tf.strings.substr(wrong, 0, 1)
    near = tf.boolean_mask(known, is_near | ~tf.reduce_any(is_near))
    message = tf.strings.join(
        [
            f"{language.name} must be one of the model: ",
            tf.strings.reduce_join(near, separator=", "),
            ". Received:",
        ]
    )
    matches = after_check(tf.reduce_all(is_known), [message, wrong], matches)
    return tf.gather(ids, tf.argmax(matches, axis=1))[:, None]
