"""Queues in which clients take turns, whatever each of them has sent.

A queue is a tree. The path to an item consists of its client, its request and the
like. Each branch, such as a client, has its turn and then goes to the end of its
level. So fifty requests of a client get as much as one of another, in constant time.
"""

import asyncio
import collections
import contextvars
import dataclasses
from collections.abc import Hashable
from typing import Any

from translate.runtime.bounded_batches import MAX_ROWS

# The client of the present request: the name of its key, or its address.
CLIENT = contextvars.ContextVar("client", default="")
MAX_BATCH_RATIO = 2  # Of the tokens of an item and of the first one of its batch.

Tree = collections.OrderedDict


def add_path(tree: Tree, path: tuple[Hashable, ...]) -> None:
    """Adds an item, the last key of a path, to a tree."""
    *branches, item = path
    for key in branches:
        tree = tree.setdefault(key, Tree())
    tree[item] = None


def remove_path(tree: Tree, path: tuple[Hashable, ...]) -> None:
    """Removes an item, and the branches that are empty without it."""
    key, *rest = path
    if rest:
        remove_path(tree[key], rest)
    if not tree[key]:
        del tree[key]


def end_turn(tree: Tree, branches: tuple[Hashable, ...]) -> None:
    """Moves branches to the end of their levels, as far as they exist."""
    for key in branches:
        if key not in tree:
            return
        tree.move_to_end(key)
        tree = tree[key]


def first_key(tree: Tree) -> Hashable:
    return next(iter(tree))


@dataclasses.dataclass(eq=False, slots=True)
class QueuedItem:
    """An item in the queue."""

    client: str
    request: object  # The items of a request share it.
    call: tuple  # Method of the model, and its arguments but a list of texts.
    text: Any  # A text, or a pair of texts.
    tokens: int  # Estimated length.
    future: asyncio.Future  # A client that is gone cancels it.
    is_short: bool  # Whether its request is short.

    @property
    def turn(self) -> tuple:
        """Branches in the order of turns."""
        return self.client, self.is_short, self.request

    @property
    def kind(self) -> tuple:
        """What the items of a batch share, but for the number of tokens."""
        return self.call, self.is_short, self.tokens


class FairQueue:
    """Items that wait for a model.

    The first item of the next request of the next client leads a batch. Waiting
    items of similar length fill it, of which the clients take turns, too.
    """

    def __init__(self):
        self._items = set()
        self._counts = collections.Counter()  # Number of items of each client.
        self._turns = Tree()  # Paths: client, whether short, request, item.
        self._alike = Tree()  # Paths: kind, client, item.

    def __len__(self):
        return len(self._items)

    def count(self, client: str) -> int:
        """Returns how many items of a client wait."""
        return self._counts[client]

    def add(self, item: QueuedItem) -> None:
        self._items.add(item)
        self._counts[item.client] += 1
        add_path(self._turns, (*item.turn, item))
        add_path(self._alike, (item.kind, item.client, item))

    def discard(self, item: QueuedItem) -> None:
        """Removes an item, if it still waits."""
        if item not in self._items:
            return
        self._items.remove(item)
        self._counts[item.client] -= 1
        if not self._counts[item.client]:
            del self._counts[item.client]
        remove_path(self._turns, (*item.turn, item))
        remove_path(self._alike, (item.kind, item.client, item))

    def advance(self, client: str) -> None:
        """Gives a client that has items the next turn."""
        self._turns.move_to_end(client, last=False)

    def take_batch(self, batch_tokens: int, with_long: bool) -> list[QueuedItem]:
        """Removes the items of the next batch, and returns them, if any may lead one.

        It has at most `batch_tokens`, padding included, unless it is one item. Those
        of long requests join none of a short request; one leads only `with_long`.
        """
        lead = self._find_lead(with_long)
        if lead is None:
            return []
        self.discard(lead)
        end_turn(self._turns, lead.turn)
        batch, longest = [lead], lead.tokens
        shortest = -(-lead.tokens // MAX_BATCH_RATIO)
        lengths = range(shortest, lead.tokens * MAX_BATCH_RATIO + 1)
        for tokens in sorted(lengths, key=lambda length: abs(length - lead.tokens)):
            kind = lead.call, lead.is_short, tokens
            while kind in self._alike:
                longest = max(longest, tokens)
                if len(batch) == MAX_ROWS or longest * (len(batch) + 1) > batch_tokens:
                    return batch
                client = first_key(self._alike[kind])
                item = first_key(self._alike[kind][client])
                self.discard(item)
                end_turn(self._alike, (kind, client))
                batch.append(item)
        return batch

    def _find_lead(self, with_long: bool) -> QueuedItem | None:
        for kinds in self._turns.values():
            for is_short, requests in kinds.items():
                if is_short or with_long:
                    return first_key(requests[first_key(requests)])
        return None
