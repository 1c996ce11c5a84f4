"""Random trees: lists of a label and children; a leaf is a pair of tag and word."""

import copy

LABELS = ["S", "NP", "VP", "PP", "SBAR", "ADVP", "PRT", "X"]
TAGS = ["NN", "IN", "-LRB-", "HYPH", "SYM", "NFP", ",", ".", ":", "``", "''"]


def draw_tree(random, num_words):
    """Returns a tree of so many words, some of them punctuation."""
    leaves = [
        (random.choice(TAGS), f"w{random.randrange(99)}") for _ in range(num_words)
    ]
    return ["S", *draw_children(random, leaves)]


def draw_children(random, leaves):
    children = []
    while leaves:
        size = random.randint(1, len(leaves))
        first, leaves = leaves[:size], leaves[size:]
        if size == 1 and random.random() < 0.7:
            children.append(first[0])
        else:
            label = random.choice(LABELS)
            children.append([label, *draw_children(random, first)])
    return children


def constituents_of(tree):
    """Yields the constituents of a tree, itself first."""
    yield tree
    for child in tree[1:]:
        if isinstance(child, list):
            yield from constituents_of(child)


def corrupt(random, tree):
    """Returns another tree of the same words, below the same label."""
    tree = copy.deepcopy(tree)
    for _ in range(random.randint(0, 20)):
        node = random.choice(list(constituents_of(tree)))
        place = random.randrange(1, len(node))
        child = node[place]
        kind = random.choice(["add", "drop", "relabel", "move"])
        if kind == "add":
            end = random.randint(place + 1, len(node))
            node[place:end] = [[random.choice(LABELS), *node[place:end]]]
        elif isinstance(child, tuple):
            continue
        elif kind == "drop":
            node[place : place + 1] = child[1:]
        elif kind == "relabel":
            child[0] = random.choice(LABELS)
        elif len(child) > 2:  # Its last child moves out of it.
            node.insert(place + 1, child.pop())
    return tree


def words(tree):
    if isinstance(tree, tuple):
        return [tree[1]]
    return [word for child in tree[1:] for word in words(child)]


def write(tree):
    """Returns the tree in Penn Treebank form."""
    if isinstance(tree, tuple):
        return f"({tree[0]} {tree[1]})"
    return f"({tree[0]} {' '.join(map(write, tree[1:]))})"


def write_decorated(random, tree):
    """The same, with function tags and traces, and blanks of all kinds."""
    blank = random.choice([" ", "\n", "\r\n  ", "\t"])
    if isinstance(tree, tuple):
        return f"({tree[0]} {tree[1]})"
    label = tree[0] + random.choice(["", "-SBJ", "=2", "-LOC-PRD-1"])
    children = [write_decorated(random, child) for child in tree[1:]]
    if random.random() < 0.2:
        trace = random.choice(["(-NONE- *)", "(NP-SBJ (S (-NONE- *T*-1)))"])
        children.insert(random.randint(0, len(children)), trace)
    return f"({label}{blank}{blank.join(children)})"


def linearise(tree):
    """Returns what a model should write of the tree."""
    if isinstance(tree, tuple):
        return f"{tree[1]}/{tree[0]}"
    return f"({tree[0]} {' '.join(map(linearise, tree[1:]))} ){tree[0]}"
