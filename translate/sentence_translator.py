"""Splits, translates and aligns the sentences of documents in batches."""

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from documents.markup.word_alignment import word_attention
from export.bundle.server_config import WARMUP_BATCH_SIZES
from export.model.sentence_splitting import split_text
from text_processing.placeholders import PLACEHOLDERS

# Maximum number of sentences in a batch times the square of the bytes of the
# longest one. It bounds the attention weights of a head and layer. `align`
# computes those of all heads and layers, and refuses more than 2**26 numbers.
MAX_SQUARES = 2**21
MAX_ALIGNED_SQUARES = 2**17
MAX_BATCH_SIZE = WARMUP_BATCH_SIZES[-1]  # The server's.
ALIGN_OUTPUTS = ("attention", "source_tokens", "target_tokens")


@dataclasses.dataclass(frozen=True)
class Translator:
    """Functions that translate and align sentences.

    Attributes:
        split: Function from texts to the spans of the sentences of each.
        translate: Function from sentences to their translations, and to
            whether each was cut at the model's limit.
        align: Function from sentences and their translations to attention
            weights, arrays `(target words, source words)` with the words of
            `find_words`.
        knows_placeholders: Whether the model was trained with `PLACEHOLDERS`.
    """

    split: Callable[[list[str]], list[list[tuple[int, int]]]]
    translate: Callable[[list[str]], tuple[list[str], list[bool]]]
    align: Callable[[list[str], list[str]], list[np.ndarray]]
    knows_placeholders: bool = False


def make_translator(
    translate: Callable, align: Callable, language: str = ""
) -> Translator:
    """Makes a translator from a model's signatures.

    Args:
        translate: Function from a list of bytes to the outputs of
            `serving_default`.
        align: Function from two string arrays `(B,)` to the outputs of `align`.
        language: ISO 639-1 code of the sources.

    Raises:
        ValueError: If `align` lacks outputs of that signature.
    """

    def translate_all(texts):
        found = [("", False)] * len(texts)
        sizes = [size_of(text) for text in texts]
        for indices in batches(sizes, MAX_SQUARES):
            outputs = translate([texts[i].encode() for i in indices])
            for i, text, was_cut in zip(
                indices,
                outputs["translation"].numpy(),
                outputs["truncated"].numpy(),
                strict=True,
            ):
                found[i] = text.decode("utf-8", "replace"), bool(was_cut)
        return tuple(map(list, zip(*found, strict=True))) or ([], [])

    def align_all(sources, targets):
        found = [None] * len(sources)
        sizes = [max(map(size_of, pair)) for pair in zip(sources, targets, strict=True)]
        for indices in batches(sizes, MAX_ALIGNED_SQUARES):
            some = [[side[i] for i in indices] for side in (sources, targets)]
            found_here = zip(indices, align_batch(align, *some), strict=True)
            for i, (attention, *pieces) in found_here:
                found[i] = word_attention(
                    attention, sources[i], pieces[0], targets[i], pieces[1]
                )
        return found

    return Translator(
        lambda texts: split_sentences(texts, language),
        translate_all,
        align_all,
        knows_placeholders(align),
    )


def split_sentences(texts: list[str], language: str) -> list[list[tuple[int, int]]]:
    """Returns the spans of the sentences of each text."""
    if not texts:
        return []
    parts, is_sentence = split_text(tf.constant(texts), language)
    spans = []
    for row, flags in zip(parts.to_list(), is_sentence.to_list(), strict=True):
        place, found = 0, []
        for part, flag in zip(row, flags, strict=True):
            end = place + len(part.decode())
            if flag:
                found.append((place, end))
            place = end
        spans.append(found)
    return spans


def align_batch(
    align: Callable, sources: list[str], targets: list[str]
) -> Iterator[tuple]:
    """Yields attention `(T, S)`, source and target subwords of each pair."""
    outputs = align(
        *(np.array([t.encode() for t in s], object) for s in (sources, targets))
    )
    missing = [name for name in ALIGN_OUTPUTS if name not in outputs]
    if missing:
        raise ValueError(
            f"`align` must return {', '.join(ALIGN_OUTPUTS)}. "
            f"Received: no {', '.join(missing)}"
        )
    for attention, *pieces in zip(
        *(outputs[name].numpy() for name in ALIGN_OUTPUTS), strict=True
    ):
        source, target = ([p for p in side if p] for side in pieces)
        yield attention[: len(target), : len(source)], source, target


def knows_placeholders(align: Callable) -> bool:
    """Returns whether placeholders are subwords of a model's vocabularies."""
    name = PLACEHOLDERS[0]
    ((_, *sides),) = align_batch(align, [name], [name])
    return all(name.encode() in pieces for pieces in sides)


def size_of(text: str) -> int:
    return len(text.encode())


def batches(sizes: list[int], max_squares: int) -> Iterator[list[int]]:
    """Yields batches of indices of sentences of similar size."""
    batch = []
    for place in sorted(range(len(sizes)), key=lambda i: sizes[i]):
        squares = (len(batch) + 1) * sizes[place] ** 2
        if batch and (squares > max_squares or len(batch) == MAX_BATCH_SIZE):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
