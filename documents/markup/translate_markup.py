"""Translates documents with tags: HTML, XML and Markdown.

The sentences of a document are translated without their inline tags. The tags
are then put around the target words that attend to their source words.
Everything outside sentences stays unchanged.
"""

import collections
import functools
import re
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

import numpy as np

from documents.markup.document_writer import FORMATS, DocumentWriter
from documents.markup.markup_tokens import Span, copy_with_edits, resolve
from documents.markup.segments import normalize_blanks, split_into_segments
from documents.markup.tagged_sentences import Sentence, make_sentences, split_in_half
from text_processing.placeholders import VARIABLE, find_untranslatable_spans

# Maximum splits of a sentence that is too long for the model.
MAX_HALVINGS = 4
# What a model may make of a variable.
CHANGED = re.compile(r"\{[^{}\0]*+\}|(?<![\w%])%[^\s⦅\0]++")


class SentenceTranslator(NamedTuple):
    """Functions that translate and align sentences.

    Attributes:
        split: Function from texts to the spans of the sentences of each.
        translate: Function from the sentences of a `TranslationRequest` to its result.
        align: Function from the pairs of an `AlignmentRequest` to its result; `None`
            if the model cannot align.
        knows_placeholders: Whether the model was trained with `PLACEHOLDERS`.
    """

    split: Callable[[list[str]], list[list[Span]]]
    translate: Callable[[list[str]], list[tuple[str, bool]]]
    align: Callable[[list[tuple[str, str]]], list[np.ndarray]] | None
    knows_placeholders: bool = False


class TranslatedDocument(NamedTuple):
    """A translated document.

    Attributes:
        content: The document: a string, or bytes from `translation_steps`.
        counts: The number of `"sentences"`, of those `"truncated"` at the
            model's limit, and of those `"kept"` untranslated, since their
            markup would be invalid.
    """

    content: str | bytes
    counts: collections.Counter


class TranslationRequest(NamedTuple):
    """Requests the translations of sentences.

    The result is a list of pairs: the translation, and whether the sentence or
    its translation was cut at the model's limit.
    """

    inputs: list[str]


class AlignmentRequest(NamedTuple):
    """Requests the word alignments of pairs of a sentence and its translation.

    The result is a list of what `word_attention` returns: arrays
    `(target words, source words)` with the words of `find_words`.
    """

    inputs: list[tuple[str, str]]


Steps = Generator[TranslationRequest | AlignmentRequest, list, TranslatedDocument]


def translate_markup(
    text: str, format: str, translator: SentenceTranslator
) -> TranslatedDocument:
    """Translates a document: runs `markup_steps` with a translator."""
    steps = markup_steps(text, format, translator.split, translator.knows_placeholders)
    return run_steps(steps, translator)


def run_steps(steps: Steps, translator: SentenceTranslator):
    """Answers the requests of steps; returns their result."""
    result = None
    while True:
        try:
            request = steps.send(result)
        except StopIteration as stop:
            return stop.value
        is_translation = isinstance(request, TranslationRequest)
        answer = translator.translate if is_translation else translator.align
        result = answer(request.inputs)


def markup_steps(
    text: str,
    format: str,
    split: Callable[[list[str]], list[list[Span]]],
    knows_placeholders: bool = False,
) -> Steps:
    """Translates the `text` of a document, and leaves the model's work to its caller.

    It yields requests, each a `TranslationRequest` or an `AlignmentRequest` of at
    least one sentence, and receives their results by `send`. There are a few for
    any number of sentences, and none for a document without letters.

    Args:
        format: `"html"`, `"xml"`, `"markdown"`, or `"srt"` or `"vtt"` for texts of
            subtitles, one a line.
        split, knows_placeholders: As in `SentenceTranslator`.

    Returns:
        The document (the `value` of `StopIteration`), with each of its tags once.

    Raises:
        ValueError: If the format is unknown, if XML is not well-formed, or if
            elements nest two hundred deep or deeper in a sentence. All
            before the first request.

    Example:
        >>> steps = markup_steps("<p>a <b>cat</b></p>", "html", split)
        >>> next(steps)
        TranslationRequest(inputs=['a cat'])
        >>> steps.send([("un gato", False)])
        AlignmentRequest(inputs=[('a cat', 'un gato')])
        >>> steps.send([np.eye(2)])
        Traceback (most recent call last):
        StopIteration: TranslatedDocument(content='<p>un <b>gato</b></p>', ...)
    """
    if format not in FORMATS:
        raise ValueError(
            f"`format` must be one of {', '.join(FORMATS)}. Received: format={format!r}"
        )
    counts = collections.Counter()
    segments = list(split_into_segments(resolve(FORMATS[format].read(text)), text))
    make = functools.partial(
        make_sentences, source=text, knows_placeholders=knows_placeholders
    )
    spans = split([segment.hidden for segment in segments])
    sentences = []
    for pair in zip(segments, spans, strict=True):
        sentences += make(*pair)
    pairs = yield from request_translations(sentences, make, counts)
    aligned = yield from request_alignments(pairs)
    result, counts["kept"] = DocumentWriter(text, aligned, format).write()
    return TranslatedDocument(result, counts)


def describe_counts(counts: collections.Counter) -> Iterator[str]:
    """Yields warnings about a translated document."""
    sentences = f"of {counts['sentences']:,} sentences"
    if cut := counts["truncated"]:
        yield f"{cut:,} {sentences} were cut at the model's limit of tokens"
    if kept := counts["kept"]:
        yield (
            f"{kept:,} {sentences} are not translated: their markup would be "
            "invalid in the translation"
        )


def request_translations(
    sentences: list[Sentence], make: Callable, counts: collections.Counter
) -> Generator[TranslationRequest, list, list[tuple[Sentence, str]]]:
    """Translates the sentences in order; one that the model cut is split in two."""
    done = []
    for halvings in range(MAX_HALVINGS + 1):
        texts = list(dict.fromkeys(sentence.text for sentence in sentences))
        found = (yield TranslationRequest(texts)) if texts else ()
        known = dict(zip(texts, found, strict=True))
        longer = []
        for sentence in sentences:
            translation, was_cut = known[sentence.text]
            halves = split_in_half(sentence) if was_cut else []
            if halves and halvings < MAX_HALVINGS:
                longer += make(sentence.segment, halves)
            else:
                counts["truncated"] += was_cut
                done.append((sentence, normalize_blanks(translation)))
        sentences = longer
    counts["sentences"] = len(done)
    return sorted(done, key=lambda pair: pair[0].place)


def request_alignments(
    pairs: list[tuple[Sentence, str]],
) -> Generator[AlignmentRequest, list, list[tuple[Sentence, str, np.ndarray | None]]]:
    """Repairs the leaves of sentences, and aligns those that have tags."""
    placed = [(s, repair_placeholders(s, translation)) for s, translation in pairs]
    asked = {(s.text, translation): None for s, translation in placed if s.marks}
    if asked:
        found = yield AlignmentRequest(list(asked))
        asked = dict(zip(asked, found, strict=True))
    return [(s, t, asked.get((s.text, t))) for s, t in placed]


def repair_placeholders(sentence: Sentence, translation: str) -> str:
    """Replaces what a model made of placeholders, and removes what it repeated."""
    names = [sentence.text[leaf.start : leaf.end] for leaf in sentence.leaves]
    left = collections.Counter(name for _, name in find_parts(sentence.text))
    # Else braces may be of ordinary text, which is translated.
    has_only_names = all(name in names for name in left if CHANGED.fullmatch(name))
    others = []
    for span, name in find_parts(translation):
        if left[name]:
            left[name] -= 1
        elif (
            name in left
            or VARIABLE.fullmatch(name)
            or (has_only_names and CHANGED.fullmatch(name))
        ):
            others.append(span)
    lost = [n for n in left.elements() if n in names and VARIABLE.fullmatch(n)]
    written = [*lost, *[""] * len(others)]
    edits = [(*span, name) for span, name in zip(others, written, strict=False)]
    return normalize_blanks(copy_with_edits(translation, edits))


def find_parts(text: str) -> list[tuple[Span, str]]:
    """Returns what stays unchanged or may have been a variable, in order."""
    spans = find_untranslatable_spans(text)
    hidden = copy_with_edits(
        text, [(*span, "\0" * (span[1] - span[0])) for span in spans]
    )
    spans += [found.span() for found in CHANGED.finditer(hidden)]
    return [(span, text[slice(*span)]) for span in sorted(spans)]
