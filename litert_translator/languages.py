"""The tags of a model of several languages, as `config.json` holds them."""


def find_tags(languages: dict | None, codes: tuple[str, str]) -> tuple[list, list]:
    """Returns the ids before a source, and those that its translation begins with.

    `languages` is `{"source_tags": {CODE: ID}, "target_tags": {CODE: ID},
    "is_forced": BOOL}`; a side with a single code needs none of `codes`.

    Raises:
        ValueError: If the model lacks a language.
    """
    if languages is None:
        return [], []
    found = []
    for side, code in zip(("source", "target"), codes, strict=True):
        tags = languages[f"{side}_tags"]
        if not code and len(tags) == 1:
            (code,) = tags
        if tags and code not in tags:
            raise ValueError(
                f"`{side}_language` must be one of {', '.join(tags)}. "
                f"Received: {side}_language={code!r}"
            )
        found.append([tags[code]] if tags else [])
    before, target = found
    return (before, target) if languages["is_forced"] else (before + target, [])
