"""Finds the languages of a corpus by their codes."""

from collections.abc import Collection

from command_line.errors import UserError


def require_both(codes: tuple[str | None, str | None], where: object) -> None:
    """Refuses a corpus of several languages where one is not named."""
    if not all(codes):
        raise UserError(
            f"{where} needs --source-language and --target-language, such as en "
            "and de. Received: not both of them"
        )
    if normalize(codes[0]) == normalize(codes[1]):
        raise UserError(
            f"{where} needs two languages as --source-language and "
            f"--target-language. Received: {codes[0]} twice"
        )


def normalize(code: str) -> str:
    """Returns `en-us` for `en_US`."""
    return code.lower().replace("_", "-")


def find_code(code: str, there: Collection[str], where: object) -> str | None:
    """Returns the code that is there, or its only variant: `en-US` for `en`.

    Several variants without the code itself are refused; `where` names what has them.
    """
    names = {normalize(name): name for name in there}
    wanted = normalize(code)
    variants = [key for key in names if key.startswith(f"{wanted}-")]
    if wanted in names:
        return names[wanted]
    if len(variants) > 1:
        several = " and ".join(names[key] for key in variants)
        raise UserError(f"{where} has {several}: name one of them, not {code!r}")
    return names[variants[0]] if variants else None


def require_codes(
    codes: tuple[str, str], there: Collection[str], where: object
) -> list[str]:
    """Returns what both codes are called there."""
    found = [find_code(code, there, where) for code in codes]
    for code, name in zip(codes, found, strict=True):
        if name is None:
            listed = ", ".join(map(str, there)) or "no language"
            raise UserError(f"{where} has {listed}; not {code!r}")
    return found
