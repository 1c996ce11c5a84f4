"""Routes requests to models, enforces limits and queues sentences."""

import asyncio
import contextlib
import functools
from collections.abc import Iterator
from typing import NamedTuple

from export.serve.batching import Batcher
from export.serve.languages import name_language
from export.serve.markup_documents import translate_documents
from export.serve.metrics import Metrics
from export.serve.models import ALTERNATIVES
from export.serve.models import MARKUP
from export.serve.models import PROBE
from export.serve.models import Model
from export.serve.models import Translation
from export.serve.options import LimitOptions
from export.serve.schemas import refuse
from export.serve.segmentation import Document
from export.serve.segmentation import find_sentences
from export.serve.segmentation import split_texts

AUTO = "auto"


class Translated(NamedTuple):
    """A translated text.

    Attributes:
        text: String.
        alternatives: Strings, other translations, best first.
        truncated: Bool, whether one of its sentences was cut.
    """

    text: str
    alternatives: list[str]
    truncated: bool


class Route(NamedTuple):
    """Model and queue of one language pair."""

    name: str
    source: str
    model: Model
    batcher: Batcher


class TranslationService:
    """The language pairs of the service, with their models and queues.

    Args:
        models: Dict from pairs of codes to models.
        limits: Limits on the size of requests.
        metrics: The `Metrics` to update.
    """

    def __init__(
        self,
        models: dict[tuple[str, str], Model],
        limits: LimitOptions,
        metrics: Metrics,
    ):
        self._limits, self._metrics = limits, metrics
        self.pairs = list(models)
        self.sources = sorted({source for source, _ in models})
        self._batchers, self._names = {}, {}
        for pair, model in models.items():
            if model not in self._batchers:
                self._names[model] = name = ":".join(pair)
                self._batchers[model] = Batcher(
                    model.in_flight,
                    limits.batch_tokens,
                    limits.queue_limit,
                    metrics.of_model(name),
                )
        self._routes = {
            pair: Route(":".join(pair), pair[0], model, self._batchers[model])
            for pair, model in models.items()
        }

    @contextlib.asynccontextmanager
    async def open(self):
        """Runs the queues while the context is open."""
        async with contextlib.AsyncExitStack() as stack:
            for batcher in self._batchers.values():
                await stack.enter_async_context(batcher.running())
            yield

    def is_alive(self) -> bool:
        """Whether the workers of all models run."""
        return all(batcher.is_alive for batcher in self._batchers.values())

    async def find_silent(self) -> list[str]:
        """Returns the first pair of each model that does not answer."""
        answers = await asyncio.gather(
            *(
                batcher.answers(model.translate, PROBE[0])
                for model, batcher in self._batchers.items()
            )
        )
        return [
            self._names[model]
            for model, answered in zip(self._batchers, answers, strict=True)
            if not answered
        ]

    def languages(self) -> list[dict]:
        """Returns the languages in LibreTranslate's form."""
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
        """Returns the optional features of each pair, for the web page."""
        return [
            {"source": source, "target": target, "shows": route.model.shows}
            for (source, target), route in self._routes.items()
        ]

    def detect(self) -> str:
        """Returns the source language, if the service has only one.

        Raises:
            HTTPException: If there are several.
        """
        if len(self.sources) > 1:
            raise refuse(
                "Invalid request: languages are not detected here, name one of "
                f"{', '.join(self.sources)}. Received: {AUTO}"
            )
        return self.sources[0]

    def find(self, source: str, target: str) -> Route:
        """Returns the route of a language pair.

        Raises:
            HTTPException: If the pair is not served.
        """
        if source == AUTO:
            source = self.detect()
        route = self._routes.get((source, target))
        if route:
            return route
        known = {code for pair in self.pairs for code in pair}
        for code in (source, target):
            if code not in known:
                raise refuse(f"{code[:20]} is not supported")
        raise refuse(
            f"{name_language(target)} ({target}) is not available as a target "
            f"language from {name_language(source)} ({source})"
        )

    def check(self, texts: list[str]) -> None:
        """Checks the size of a request.

        Raises:
            HTTPException: If it exceeds a limit.
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
        self, route: Route, texts: list[str], alternatives: int = 0
    ) -> list[Translated]:
        """Translates texts.

        Args:
            route: Result of `find`.
            texts: Texts to translate.
            alternatives: Int, maximum number of alternatives of each text.

        Raises:
            BusyError: If the queue is full.
        """
        documents = await self.cut(route, texts)
        sentences = [s for document in documents for s in document.sentences]
        ask = route.batcher.ask
        best = await ask(route.model.translate, sentences)
        others = [[]] * len(sentences)
        if alternatives and ALTERNATIVES in route.model.shows:
            others = await ask(
                route.model.find_alternatives,
                sentences,
                alternatives + 1,
                is_admitted=True,
            )
        self.record_metrics(route, sentences, best)
        translated = []
        for document in documents:
            count = len(document.places)
            translated.append(
                join(document, best[:count], others[:count], alternatives)
            )
            best, others = best[count:], others[count:]
        return translated

    async def translate_html(
        self, route: Route, texts: list[str]
    ) -> list[Translated]:
        """Translates HTML documents.

        Raises:
            BusyError: If the queue is full.
        """
        self.check(texts)
        if MARKUP not in route.model.shows:
            raise refuse(
                "html format is not supported: the model has no alignments"
            )
        model, ask, is_admitted = route.model, route.batcher.ask, False

        async def translate(sentences):
            nonlocal is_admitted
            found = await ask(
                model.translate, sentences, is_admitted=is_admitted
            )
            is_admitted = True
            self.record_metrics(route, sentences, found)
            return found

        split = functools.partial(
            find_sentences,
            language=route.source,
            max_bytes=route.batcher.max_bytes,
        )
        found = await translate_documents(
            texts,
            "html",
            split,
            model.knows_placeholders,
            translate,
            functools.partial(ask, model.align, is_admitted=True),
        )
        return [
            Translated(each.text, [], each.counts["truncated"] > 0)
            for each in found
        ]

    async def cut(self, route: Route, texts: list[str]) -> list[Document]:
        """Splits texts into sentences."""
        self.check(texts)
        return await asyncio.to_thread(
            split_texts, texts, route.source, route.batcher.max_bytes
        )

    @contextlib.contextmanager
    def submit_sentences(
        self, route: Route, sentences: list[str]
    ) -> Iterator[list[asyncio.Future]]:
        """Yields futures of `Translation`s; see `Batcher.submit`."""
        with route.batcher.submit(route.model.translate, sentences) as futures:
            yield futures

    def record_metrics(
        self,
        route: Route,
        sentences: list[str],
        translations: list[Translation],
    ) -> None:
        """Updates the metrics of translated text."""
        for measure, amount in (
            (self._metrics.sentences, len(sentences)),
            (self._metrics.characters, sum(map(len, sentences))),
            (self._metrics.truncated, sum(t.truncated for t in translations)),
        ):
            measure.labels(route.name).inc(amount)


def join(
    document: Document,
    best: list[Translation],
    others: list[list[str]],
    alternatives: int,
) -> Translated:
    """Replaces the sentences of a document by their translations.

    The n-th alternative of a text consists of the n-th alternatives of its
    sentences, or of the best translation of a sentence that has fewer.
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
