"""Routes requests to models, enforces limits and queues sentences."""

import asyncio
import contextlib
import functools
from collections.abc import Callable
from typing import NamedTuple

from documents.formats import Document, translation_steps
from documents.markup.translate_markup import markup_steps
from serve.batching import Batcher
from serve.document_queue import translate_documents
from serve.language_detection import LanguageDetector
from serve.languages import match_code, name_language
from serve.metrics import Metrics
from serve.options import LimitOptions
from serve.schemas import http_error
from translate.runtime.runtime import ALTERNATIVES, MARKUP, PROBE, Runtime, Translation
from translate.segmentation import SplitText, find_sentences, split_texts


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
    model: Runtime
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
        models: dict[tuple[str, str], Runtime],
        limits: LimitOptions,
        metrics: Metrics,
    ):
        self._limits, self._metrics = limits, metrics
        self.pairs = list(models)
        self._codes = sorted({code for pair in models for code in pair})
        self.detector = LanguageDetector(sorted({s for s, _ in models}))
        batchers = {}
        for pair, model in models.items():
            if model not in batchers:
                batchers[model] = Batcher(
                    model.in_flight,
                    limits.batch_tokens,
                    limits.queue_limit,
                    metrics.of_model(":".join(pair)),
                )
        self._batchers = list(batchers.values())
        self._routes = {
            pair: Route(":".join(pair), pair[0], model, batchers[model])
            for pair, model in models.items()
        }

    @contextlib.asynccontextmanager
    async def open(self):
        """Runs the queues while the context is open."""
        async with contextlib.AsyncExitStack() as stack:
            for batcher in self._batchers:
                await stack.enter_async_context(batcher.running())
            yield

    def replace_models(self, models: dict[tuple[str, str], Runtime]) -> None:
        """Replaces the model of each pair; the queues stay.

        Requests that have begun keep their model, which is freed after them.
        """
        self._routes = {
            pair: route._replace(model=models[pair])
            for pair, route in self._routes.items()
        }

    def is_alive(self) -> bool:
        """Whether the workers of all models run."""
        return all(batcher.is_alive for batcher in self._batchers)

    async def find_unresponsive(self) -> list[str]:
        """Returns a pair of each model that does not answer."""
        routes = {route.batcher: route for route in self._routes.values()}
        answers = await asyncio.gather(
            *(
                batcher.is_responsive(route.model.translate, PROBE[0])
                for batcher, route in routes.items()
            )
        )
        return [
            route.name
            for route, answered in zip(routes.values(), answers, strict=True)
            if not answered
        ]

    def languages(self) -> list[dict]:
        """Returns the languages in LibreTranslate's form."""
        return [
            {
                "code": code,
                "name": name_language(code),
                "targets": sorted(t for s, t in self.pairs if s == code),
            }
            for code in self._codes
        ]

    def features(self) -> list[dict]:
        """Returns the optional features of each pair, for the web page."""
        return [
            {"source": source, "target": target, "features": route.model.features}
            for (source, target), route in self._routes.items()
        ]

    def find(self, source: str, target: str) -> Route:
        """Returns the route of a language pair.

        Args:
            source, target: Codes, in any case, or aliases of them.

        Raises:
            HTTPException: If the pair is not served.
        """
        codes = [
            match_code(code, self._codes) or refuse_code(code)
            for code in (source, target)
        ]
        route = self._routes.get(tuple(codes))
        if route:
            return route
        (source, source_name), (target, target_name) = (
            (code, name_language(code)) for code in codes
        )
        raise http_error(
            f"{target_name} ({target}) is not available as a target "
            f"language from {source_name} ({source})"
        )

    def check(self, texts: list[str]) -> None:
        """Checks the size of a request.

        Raises:
            HTTPException: If it exceeds a limit.
        """
        longest = max(map(len, texts), default=0)
        for size, limit, unit in (
            (len(texts), self._limits.batch_limit, "texts"),
            (longest, self._limits.char_limit, "characters"),
        ):
            if size > limit:
                raise http_error(
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
        documents = await self.split(route, texts)
        sentences = [s for document in documents for s in document.sentences]
        run = route.batcher.run
        best = await run(route.model.translate_any_length, sentences)
        others = [[]] * len(sentences)
        if alternatives and ALTERNATIVES in route.model.features:
            others = await run(
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

    async def translate_html(self, route: Route, texts: list[str]) -> list[Translated]:
        """Translates documents of HTML; see `translate`."""
        self.check(texts)
        check_markup(route, "html format is")
        found = await self._translate_documents(
            route, functools.partial(markup_steps, format="html"), texts
        )
        return [
            Translated(each.content, [], each.counts["truncated"] > 0) for each in found
        ]

    async def translate_file(
        self, route: Route, document: Document, suffix: str
    ) -> bytes:
        """Returns the translation of a document; `suffix` is for messages.

        Raises:
            HTTPException: If the model cannot translate its format.
        """
        self.check([document.plain])
        if document.format:
            check_markup(route, f"{suffix} files are")
        (found,) = await self._translate_documents(route, translation_steps, [document])
        return found.content

    async def _translate_documents(
        self, route: Route, make_steps: Callable, documents: list
    ) -> list:
        """Returns the results of the steps of documents, translated together."""
        model, run, is_admitted = route.model, route.batcher.run, False

        async def translate(sentences):
            nonlocal is_admitted
            found = await run(model.translate, sentences, is_admitted=is_admitted)
            is_admitted = True
            self.record_metrics(route, sentences, found)
            return found

        split = functools.partial(
            find_sentences, language=route.source, max_bytes=route.batcher.max_bytes
        )
        steps = [
            make_steps(each, split=split, knows_placeholders=model.knows_placeholders)
            for each in documents
        ]
        align = functools.partial(run, model.align, is_admitted=True)
        return await translate_documents(steps, translate, align)

    async def split(self, route: Route, texts: list[str]) -> list[SplitText]:
        """Splits texts into sentences."""
        self.check(texts)
        return await asyncio.to_thread(
            split_texts, texts, route.source, route.batcher.max_bytes
        )

    def record_metrics(
        self, route: Route, sentences: list[str], translations: list[Translation]
    ) -> None:
        """Updates the metrics of translated text."""
        for measure, amount in (
            (self._metrics.sentences, len(sentences)),
            (self._metrics.characters, sum(map(len, sentences))),
            (self._metrics.truncated, sum(t.truncated for t in translations)),
        ):
            measure.labels(route.name).inc(amount)


def check_markup(route: Route, what: str) -> None:
    """Checks that a model can translate documents with tags.

    Raises:
        HTTPException: If not; its message begins with `what`.
    """
    if MARKUP not in route.model.features:
        raise http_error(f"{what} not supported: the model has no alignments")


def refuse_code(code: str) -> None:
    raise http_error(f"{code[:20]} is not supported")


def join(
    document: SplitText,
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
                ([a for a in some if a != each.text] + [each.text] * (rank + 1))[rank]
                for each, some in zip(best, others, strict=True)
            ]
        )
        if other not in (text, *found):
            found.append(other)
    return Translated(text, found, any(each.truncated for each in best))
