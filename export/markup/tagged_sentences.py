"""A sentence of a document: the model's input and the tree of its tags."""

import dataclasses

from export.markup.markup_tokens import Kind
from export.markup.markup_tokens import Token
from export.markup.segments import Segment
from export.markup.tag_projection import Node
from text_processing.placeholders import PLACEHOLDERS

MOST_NESTED = 200  # Maximum depth of nested tags.
STOPS = ",;:—…)"


@dataclasses.dataclass
class Sentence:
    """A sentence.

    Attributes:
        segment: Its segment.
        span: Its span in the text of the segment.
        place: Its span in the document, with its tags.
        text: The input of the model.
        root: The tree of its tags, with positions in that text.
        leaves: The nodes that are put back unchanged, in order.
        is_uppercase: Whether it is in capitals, which the model's input is not.
    """

    segment: Segment
    span: tuple[int, int]
    place: tuple[int, int]
    text: str
    root: Node
    leaves: list[Node]
    is_uppercase: bool


def make_sentences(
    segment: Segment,
    spans: list[tuple[int, int]],
    source: str,
    with_pieces: bool,
) -> list[Sentence]:
    """Returns the sentences of a segment.

    Args:
        segment: The segment.
        spans: The spans of the sentences in its text.
        source: The document.
        with_pieces: Whether the model knows placeholders.
    """
    sentences, done = [], 0
    for start, end in spans:
        marks, done = take_markup(segment.marks, start, end, done)
        if not any(map(str.isalpha, visible(segment, start, end))):
            continue
        first, last = segment.places[start][0], segment.places[end - 1][1]
        if marks:
            first = min(first, marks[0][2].start)
            last = max(last, marks[-1][2].end)
        text, moved = write_text(segment, (start, end), marks, with_pieces)
        root, leaves = build_tree(
            [(moved[m[0] - start], moved[m[1] - start], m[2]) for m in marks],
            len(text),
            source,
        )
        quiet = text[:1] + text[1:].lower()
        is_uppercase = is_in_capitals(segment.hidden[start:end], text, quiet)
        sentences.append(
            Sentence(
                segment,
                (start, end),
                (first, last),
                quiet if is_uppercase else text,
                root,
                leaves,
                is_uppercase,
            )
        )
    return sentences


def visible(segment: Segment, start: int, end: int) -> str:
    """Returns the text of a range without untranslated parts."""
    parts, done = [], start
    for first, last, _ in segment.marks:
        if start <= first < last <= end:
            parts.append(segment.text[done:first])
            done = last
    return " ".join([*parts, segment.text[done:end]])


def is_in_capitals(hidden: str, text: str, quiet: str) -> bool:
    """Returns whether a text has two words or more, all in capitals."""
    words = [word for word in hidden.split() if word.isupper()]
    return (
        hidden.isupper()
        and len([word for word in words if len(word) > 1]) > 1
        and len(text) == len(quiet)
    )


def take_markup(marks: list, start: int, end: int, done: int) -> tuple:
    """Returns the markup of a sentence, and the number of tokens taken so far.

    At its edges a sentence takes the tokens from the first start tag to the
    last end tag.

    Args:
        marks: The markup of the segment.
        start: Int, where the sentence begins.
        end: Int, where it ends.
        done: Int, the number of tokens that are taken already.
    """
    first = done
    while first < len(marks) and (
        marks[first][1] < start
        or (marks[first][1] == start and marks[first][2].kind is not Kind.OPEN)
    ):
        first += 1
    last = first
    for place in range(first, len(marks)):
        if marks[place][0] > end:
            break
        if marks[place][0] < end or marks[place][2].kind is Kind.CLOSE:
            last = place + 1
    return marks[first:last], last


def write_text(
    segment: Segment, span: tuple[int, int], marks: list, with_pieces: bool
) -> tuple[str, list[int]]:
    """Returns the model's input, and the position of each character in it."""
    start, end = span
    names = iter(PLACEHOLDERS if with_pieces else ())
    written, moved, done = "", [], start
    for first, last, token in [*marks, (end, end, None)]:
        while done < first:
            moved.append(len(written))
            written += segment.text[done]
            done += 1
        if last > first:
            moved += [len(written)] * (last - first)
            written += next(names, token.text.strip())
            done = last
    return written, [*moved, len(written)]


def build_tree(
    marks: list[tuple[int, int, Token]], end: int, source: str
) -> tuple[Node, list[Node]]:
    """Returns the tree of a sentence's tags, and its leaves with text.

    A tag without its other half continues in the sentence before or after. A
    wrongly nested tag is treated like an image.
    """
    root, leaves = Node(0, end), []
    stack = [(root, "")]
    for first, last, token in marks:
        node = Node(first, last, touches=touches(token, source))
        written = source[token.start : token.end]
        top = stack[-1][0]
        names = [name for _, name in stack]
        if token.kind is Kind.OPEN:
            node.before, node.after = token.text or written, None
            top.children.append(node)
            stack.append((node, token.name))
            if len(stack) > MOST_NESTED:
                raise ValueError(
                    f"`text` must nest fewer than {MOST_NESTED} tags in a "
                    f"sentence. Received: {written} at {token.start}"
                )
            continue
        if token.kind is Kind.VERBATIM and last > first:
            node.verbatim = written
            leaves.append(node)
        elif token.kind is not Kind.CLOSE:
            node.before = written
        elif token.name in names:
            close_tag(stack, token, token.text or written, first)
            continue
        elif len(stack) == 1:
            node.start, node.before = 0, None
            node.after = token.text or written
            node.children, root.children = root.children, []
        else:
            node.before = written
        top.children.append(node)
    for node, _ in stack[1:]:
        node.end = end
    return root, leaves


def close_tag(stack: list, token: Token, written: str, end: int) -> None:
    """Closes the innermost tag of a name; tags inside become empty."""
    while stack[-1][1] != token.name:
        node, _ = stack.pop()
        node.end, node.after = node.start, ""
        stack[-1][0].children += node.children
        node.children = []
    node, _ = stack.pop()
    node.end, node.after = end, written


def touches(token: Token, source: str) -> tuple[bool, bool]:
    """Returns whether text, and no blank, precedes and follows a token."""
    before = source[max(0, token.start - 1) : token.start]
    after = source[token.end : token.end + 1]
    return bool(before.strip()), bool(after.strip())


def split_in_half(sentence: Sentence) -> list[tuple[int, int]]:
    """Returns the spans of a sentence's halves, or none without a blank."""
    start, end = sentence.span
    hidden = sentence.segment.hidden
    blanks = [i for i in range(start + 1, end - 1) if hidden[i] == " "]
    if not blanks:
        return []
    middle, quarter = (start + end) / 2, (end - start) / 4

    def cost(blank):
        stops = hidden[blank - 1] in STOPS
        distance = abs(blank - middle)
        return (not (stops and distance < quarter), distance)

    blank = min(blanks, key=cost)
    return [(start, blank), (blank + 1, end)]
