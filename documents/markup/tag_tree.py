"""Builds the tree of a sentence's tags."""

import bisect
import collections

from documents.markup.markup_tokens import MAX_DEPTH, RUBY_TEXTS, Kind, Span, Token
from documents.markup.tag_projection import Node


def build_tree(
    tokens: list[Token], spans: list[Span], length: int, source: str
) -> tuple[Node, list[Node]]:
    """Returns the tree of a sentence's tags, and its leaves with text.

    A tag without its other half continues in the sentence before or after. A
    wrongly nested tag is treated like an image.
    """
    root = Node(0, length)
    leaves, stack, depth = [], [root], 0
    names = collections.Counter()  # Of the tags in `stack`.
    for number, (token, (start, end)) in enumerate(zip(tokens, spans, strict=True)):
        before = source[max(0, token.start - 1) : token.start]
        after = source[token.end : token.end + 1]
        touches = bool(before.strip()), bool(after.strip())
        if token.name in RUBY_TEXTS:
            touches = True, False  # It is of the word before it.
        node = Node(start, end, number, touches=touches)
        if token.kind is Kind.CLOSE and names[token.name]:
            close_tag(stack, tokens, names, number, start)
            continue
        if token.kind is Kind.CLOSE and len(stack) == 1:
            node.start, node.opening, node.closing = 0, None, number
            node.children, root.children = root.children, []
            depth += 1
        stack[-1].children.append(node)
        if token.kind is Kind.OPEN:
            node.continues = True
            stack.append(node)
            names[token.name] += 1
        elif start < end:
            node.is_leaf = True
            leaves.append(node)
        if depth + len(stack) > MAX_DEPTH:
            raise ValueError(
                f"`text` must nest fewer than {MAX_DEPTH} tags in a "
                f"sentence. Received: one more at {token.start}"
            )
    for node in stack[1:]:
        node.end = length
    return root, leaves


def close_tag(
    stack: list[Node],
    tokens: list[Token],
    names: collections.Counter,
    number: int,
    end: int,
) -> None:
    """Closes the innermost tag of a name; tags inside become empty."""
    name = tokens[number].name
    place = len(stack) - 1
    while tokens[stack[place].opening].name != name:
        place -= 1
    closed = stack[place]
    for node in stack[place:]:
        names[tokens[node.opening].name] -= 1
    for node in stack[place + 1 :]:
        node.end, node.continues = node.start, False
        closed.children += node.children
        node.children = []
    del stack[place:]
    closed.end, closed.closing, closed.continues = end, number, False


def locate_tags(root: Node, spans: list[Span], begins: list[int]) -> list[list[int]]:
    """Sets the words of each node; returns the indices of tags before each word."""
    gaps = [[] for _ in range(len(begins) + 1)]
    for number, (start, end) in enumerate(spans):
        if start == end:
            gaps[bisect.bisect_left(begins, start)].append(number)
    nodes = [root]
    while nodes:
        node = nodes.pop()
        node.first = bisect.bisect_left(begins, node.start)
        node.last = bisect.bisect_left(begins, node.end)
        nodes += node.children
    return gaps
