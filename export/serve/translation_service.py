"""From texts to translations: which model, how much, and in what pieces."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from export.serve.batching import Batcher
from export.serve.languages import name_language
from export.serve.metrics import Metrics
from export.serve.models import ALTERNATIVES
from export.serve.models import MARKUP
from export.serve.models import Model
from export.serve.models import Translation
from export.serve.options import LimitOptions
from export.serve.schemas import refuse
from export.serve.segmentation import Document
from export.serve.segmentation import cut_texts

AUTO = "auto"


class Translated(NamedTuple):
    """A text that was translated.

    Attributes:
        text: String.
        alternatives: Strings, other translations, best first.
        truncated: Bool, whether one of its sentences was cut.
    """

    text: str
    alternatives: list[str]
    truncated: bool


class Counter(NamedTuple):
    """Where one pair is served."""

    name: str
    source: str
    model: Model
    batcher: Batcher


class TranslationService:
    """All that is translated, and the queues before it.

    Args:
        models: Dict from pairs of codes to models.
        limits: How much may be asked.
        measures: To which is told what was.
    """

    def __init__(
        self,
        models: dict[tuple[str, str], Model],
        limits: LimitOptions,
        measures: Metrics,
    ):
        self._limits, self._measures = limits, measures
        self.pairs = list(models)
        self.sources = sorted({source for source, _ in models})
        self._batchers = {}
        for pair, model in models.items():
            if model not in self._batchers:
                name = ":".join(pair)
                batcher = Batcher(
                    model.in_flight,
                    limits.batch_tokens,
                    limits.queue_limit,
                    measures.rows.labels(name).observe,
                )
                self._batchers[model] = batcher
                measures.waiting.labels(name).set_function(
                    lambda batcher=batcher: batcher.waiting
                )
        self._counters = {
            pair: Counter(":".join(pair), pair[0], model, self._batchers[model])
            for pair, model in models.items()
        }

    @contextlib.asynccontextmanager
    async def open(self):
        """Answers while the context lasts."""
        async with contextlib.AsyncExitStack() as stack:
            for batcher in self._batchers.values():
                await stack.enter_async_context(batcher.running())
            yield

    def languages(self) -> list[dict]:
        """Returns the languages, as LibreTranslate's clients know them."""
        codes = sorted({code for pair in self.pairs for code in pair})
        return [
            {
                "code": code,
                "name": name_language(code),
                "targets": sorted(t for s, t in self.pairs if s == code),
            }
            for code in codes
        ]

    def shows(self) -> list[dict]:
        """Returns what the page may ask about each pair."""
        return [
            {"source": source, "target": target, "shows": counter.model.shows}
            for (source, target), counter in self._counters.items()
        ]

    def detect(self) -> str:
        """Returns the language that any text is in, where there is one.

        Raises:
            HTTPException: If there are several.
        """
        if len(self.sources) > 1:
            raise refuse(
                "Invalid request: languages are not detected here, name one of "
                f"{', '.join(self.sources)}. Received: {AUTO}"
            )
        return self.sources[0]

    def find(self, source: str, target: str) -> Counter:
        """Returns where a pair is served.

        Raises:
            HTTPException: If nowhere.
        """
        if source == AUTO:
            source = self.detect()
        counter = self._counters.get((source, target))
        if counter:
            return counter
        known = {code for pair in self.pairs for code in pair}
        for code in (source, target):
            if code not in known:
                raise refuse(f"{code[:20]} is not supported")
        raise refuse(
            f"{name_language(target)} ({target}) is not available as a target "
            f"language from {name_language(source)} ({source})"
        )

    def check(self, texts: list[str]) -> None:
        """Refuses too much.

        Raises:
            HTTPException: If it is.
        """
        for size, limit, unit in (
            (len(texts), self._limits.batch_limit, "texts"),
            (sum(map(len, texts)), self._limits.char_limit, "characters"),
        ):
            if size > limit:
                raise refuse(
                    f"Invalid request: request ({size}) exceeds text limit "
                    f"({limit}) of {unit}"
                )

    async def translate(
        self, counter: Counter, texts: list[str], alternatives: int = 0
    ) -> list[Translated]:
        """Translates texts.

        Args:
            counter: What `find` returned.
            texts: What to translate.
            alternatives: How many other translations of each are wanted; there
                may be fewer.

        Raises:
            BusyError: If too much waits.
        """
        documents = await self.cut(counter, texts)
        sentences = [s for document in documents for s in document.sentences]
        ask = counter.batcher.ask
        best = await ask(counter.model.translate, sentences)
        others = [[]] * len(sentences)
        if alternatives and ALTERNATIVES in counter.model.shows:
            others = await ask(
                counter.model.find_alternatives, sentences, alternatives + 1
            )
        self.note(counter, sentences, best)
        translated = []
        for document in documents:
            count = len(document.places)
            translated.append(
                join(document, best[:count], others[:count], alternatives)
            )
            best, others = best[count:], others[count:]
        return translated

    async def translate_html(
        self, counter: Counter, texts: list[str]
    ) -> list[Translated]:
        """Translates documents of HTML, each at one go.

        Raises:
            BusyError: If too much waits.
        """
        self.check(texts)
        if MARKUP not in counter.model.shows:
            raise refuse(
                "html format is not supported: the model has no alignments"
            )
        found = await counter.batcher.ask(
            counter.model.translate_html, texts, counter.source.split("-")[0]
        )
        self.note(counter, texts, found)
        return [Translated(each.text, [], each.truncated) for each in found]

    async def cut(self, counter: Counter, texts: list[str]) -> list[Document]:
        """Cuts texts into sentences."""
        self.check(texts)
        return await asyncio.to_thread(cut_texts, texts, counter.source)

    @contextlib.contextmanager
    def translating(
        self, counter: Counter, sentences: list[str]
    ) -> Iterator[list[asyncio.Future]]:
        """Gives futures of `Translation`s; see `Batcher.asked`."""
        with counter.batcher.asked(
            counter.model.translate, sentences
        ) as futures:
            yield futures

    def note(
        self,
        counter: Counter,
        sentences: list[str],
        translations: list[Translation],
    ) -> None:
        """Counts what was translated."""
        for measure, amount in (
            (self._measures.sentences, len(sentences)),
            (self._measures.characters, sum(map(len, sentences))),
            (self._measures.truncated, sum(t.truncated for t in translations)),
        ):
            measure.labels(counter.name).inc(amount)


def join(
    document: Document,
    best: list[Translation],
    others: list[list[str]],
    alternatives: int,
) -> Translated:
    """Puts the translations of sentences where these stood.

    An alternative of a text has those of its sentences of one rank, or their
    best where there are not so many.
    """
    text = document.filled([each.text for each in best])
    found = []
    for rank in range(alternatives):
        other = document.filled(
            [
                (
                    [a for a in some if a != each.text]
                    + [each.text] * (rank + 1)
                )[rank]
                for each, some in zip(best, others, strict=True)
            ]
        )
        if other not in (text, *found):
            found.append(other)
    return Translated(text, found, any(each.truncated for each in best))
