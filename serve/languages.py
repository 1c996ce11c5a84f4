"""Parses language pairs and loads the model of each."""

import argparse
import dataclasses
import pathlib
import re
from typing import NamedTuple

import babel

from command_line.errors import UserError
from translate.loading import load_export
from translate.runtime.runtime import Runtime
from translate.runtime.tf_serving import ClientOptions, connect
from translate.segmentation import make_sentence_splitter

CODE = r"[a-z]{2,3}(?:-\w+)*"
PAIR = re.compile(rf"(?P<source>{CODE}):(?P<target>{CODE})=(?P<location>.+)", re.ASCII)
LOCATION_PATTERN = re.compile(r"(?:([\w.-]+)@)?(.+)", re.ASCII)
# LibreTranslate's short codes, and old ones that its clients still send.
ALIASES = {
    "pb": "pt-br",
    "zh": "zh-hans",
    "zh-cn": "zh-hans",
    "zt": "zh-hant",
    "zh-tw": "zh-hant",
    "iw": "he",
    "nb": "no",
}


class Pair(NamedTuple):
    """Two languages and the location of their model.

    Attributes:
        source, target: Strings, codes such as `"en"`.
        location: String, a folder or the address of a server.
    """

    source: str
    target: str
    location: str


def read_pair(text: str) -> Pair:
    """Parses a pair, for argparse."""
    match = PAIR.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(
            "must be SOURCE:TARGET=EXPORT_DIR or SOURCE:TARGET=HOST:PORT, such "
            f"as en:es=exports/demo. Received: {text}"
        )
    return Pair(**match.groupdict())


def load_pairs(
    pairs: list[Pair], options: ClientOptions
) -> dict[tuple[str, str], Runtime]:
    """Loads the model of each pair; pairs with one location share a model.

    A location is the folder of an export, or `[NAME@]HOST:PORT` or
    `[NAME@]https://…`, where `NAME` is the model's name on that server.

    Args:
        pairs: The pairs to serve.
        options: Options of the clients of servers.

    Returns:
        Dict from pairs of codes to models.

    Raises:
        UserError: If a pair is given twice, or its model is missing.
    """
    named = [(source, target) for source, target, _ in pairs]
    for pair in named:
        if named.count(pair) > 1:
            raise UserError(
                f"--pair must name each pair once. Received: {':'.join(pair)} twice"
            )
    models = {}
    for location in dict.fromkeys(pair.location for pair in pairs):
        try:
            models[location] = load_location(location, options)
        except UserError as error:
            raise UserError(f"--pair …={location}: {error}") from None
    for source, _ in named:
        # Trace the graph here, not in several concurrent first requests.
        make_sentence_splitter(source.split("-")[0]).get_concrete_function()
    return dict(zip(named, (models[pair.location] for pair in pairs), strict=True))


def load_location(location: str, options: ClientOptions) -> Runtime:
    name, server = LOCATION_PATTERN.fullmatch(location).groups()
    folder = pathlib.Path(location)
    if folder.is_dir() or not re.search(r"://|:\d+$", server):
        runtime = load_export(folder)
    else:
        if name:
            options = dataclasses.replace(options, model_name=name)
        runtime = connect(server, options)
        runtime.find_signatures()
    runtime.probe()
    return runtime


def match_code(code: str, served: list[str]) -> str | None:
    """Returns the code of the service that a client's code means.

    Example:
        >>> match_code("ZH", ["en", "zh-Hans"])
        'zh-Hans'
    """
    if code in served:
        return code
    wanted = normalize_code(code)
    return next((c for c in served if normalize_code(c) == wanted), None)


def normalize_code(code: str) -> str:
    """Returns one spelling for all codes of a language.

    Example:
        >>> normalize_code("zh"), normalize_code("PT_br")
        ('zh-hans', 'pt-br')
    """
    code = code.lower().replace("_", "-")
    return ALIASES.get(code, code)


def name_language(code: str) -> str:
    """Returns the English name of a language, or its code."""
    try:
        return babel.Locale.parse(code, sep="-").get_display_name("en") or code
    except (babel.UnknownLocaleError, ValueError):
        return code
