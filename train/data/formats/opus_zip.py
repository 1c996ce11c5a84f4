"""Finds the two text files of a zip file of OPUS, in Moses's form."""

import pathlib
import re
import zipfile

from command_line.errors import UserError
from train.data.formats.language_codes import require_codes

# Such as Europarl.de-en.de.
MEMBER = re.compile(r".*\.([^.]+)-([^.]+)\.(?P<code>\1|\2)")


def find_files(path: pathlib.Path, source: str, target: str) -> list[zipfile.Path]:
    """Returns the files of both languages, opened as other paths are."""
    try:
        names = zipfile.ZipFile(path).namelist()
    except zipfile.BadZipFile as error:
        raise UserError(f"{path} must be a whole zip file: {error}") from None
    found = [match for name in names if (match := MEMBER.fullmatch(name))]
    if not found:
        listed = ", ".join(names[:3]) or "no file"
        raise UserError(
            f"{path} must be of OPUS's Moses format, with files such as "
            f"NAME.{source}-{target}.{source}. Received: {listed}"
        )
    members = {match["code"]: match[0] for match in found}
    if len(found) > len(members):
        listed = ", ".join(match[0] for match in found)
        raise UserError(f"{path} must hold one corpus. Received: {listed}")
    chosen = require_codes((source, target), members, path)
    return [zipfile.Path(path, members[code]) for code in chosen]
