"""Routes requests to models, enforces limits and queues sentences."""

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

from documents.formats import Document, translation_steps
from documents.markup.translate_markup import markup_steps
from serve.batching import Batcher
from serve.fair_executor import limit_calls, run_together, split_in_turn
from serve.languages import LanguageDetector, match_code, name_language
from serve.metrics import Metrics
from serve.options import LimitOptions
from serve.schemas import http_error
from translate.runtime.runtime import ALTERNATIVES, MARKUP, Runtime, Translation
from translate.segmentation import SplitText, find_sentences, split_texts

Models = dict[tuple[str, str], Runtime]  # By the codes of a pair.
SPLIT_TEXTS = 10  # Texts that are split before another client has its turn.
MAX_HTML_REQUESTS = 32  # Of a client at a time; others wait.


class TextTranslation(NamedTuple):
    """A translated text, and other translations of it, best first."""

    text: str
    alternatives: list[str]
    truncated: bool  # Whether one of its sentences was cut.


class ServedModel(NamedTuple):
    """Model and queue of one language pair."""

    name: str
    source: str
    model: Runtime
    batcher: Batcher

    def with_terms(self, terms: list[tuple[str, str]]) -> "ServedModel":
        """Returns the model with more terms, which replace those of its glossary."""
        check_markup(self, "a glossary is")
        try:
            glossary = self.model.glossary.overridden_by(terms)
        except ValueError as error:
            raise http_error(f"Invalid request: glossary: {error}") from None
        return self._replace(model=self.model.with_glossary(glossary))


class TranslationService:
    """The language pairs of the service, with their models and queues."""

    def __init__(self, models: Models, limits: LimitOptions, metrics: Metrics):
        self.limits, self.metrics = limits, metrics
        self.pairs = list(models)
        self._codes = sorted({code for pair in models for code in pair})
        self.detector = LanguageDetector(sorted({source for source, _ in models}))
        batchers, self._served = {}, {}
        for pair, model in models.items():
            name, original = ":".join(pair), model.original
            if original not in batchers:
                sizes = model.in_flight, limits.batch_tokens, limits.queue_limit
                batchers[original] = Batcher(*sizes, metrics.of_model(name))
            self._served[pair] = ServedModel(name, pair[0], model, batchers[original])
        self._batchers = list(batchers.values())

    @contextlib.asynccontextmanager
    async def open(self):
        """Runs the queues while the context is open."""
        async with contextlib.AsyncExitStack() as stack:
            for batcher in self._batchers:
                await stack.enter_async_context(batcher.running())
            yield

    def replace_models(self, models: Models) -> None:
        """Replaces the model of each pair; requests that have begun keep theirs."""
        served = self._served.items()
        self._served = {p: old._replace(model=models[p]) for p, old in served}

    def is_alive(self) -> bool:
        """Whether the workers of all models run."""
        return all(each.is_alive for each in self._batchers)

    async def find_unresponsive(self) -> list[str]:
        """Returns a pair of each model that does not answer."""
        served = {each.batcher: each for each in self._served.values()}.values()
        asked = [x.batcher.is_responsive(x.model.translate, "a") for x in served]
        answers = zip(served, await asyncio.gather(*asked), strict=True)
        return [each.name for each, answered in answers if not answered]

    def languages(self) -> list[dict]:
        """Returns the languages in LibreTranslate's form."""
        targets = {c: sorted(t for s, t in self.pairs if s == c) for c in self._codes}
        return [
            {"code": code, "name": name_language(code), "targets": found}
            for code, found in targets.items()
        ]

    def features(self) -> list[dict]:
        """Returns the optional features of each pair, for the web page."""
        return [
            {"source": source, "target": target, "features": served.model.features}
            for (source, target), served in self._served.items()
        ]

    def find(self, source: str, target: str) -> ServedModel:
        """Returns the model of two codes, in any case, or aliases of them."""
        codes = [match_code(code, self._codes) for code in (source, target)]
        for code, found in zip((source, target), codes, strict=True):
            if not found:
                raise http_error(f"{code[:20]} is not supported")
        served = self._served.get(tuple(codes))
        if not served:
            source, target = (f"{name_language(code)} ({code})" for code in codes)
            raise http_error(
                f"{target} is not available as a target language from {source}"
            )
        return served

    def check(self, texts: list[str]) -> None:
        """Refuses a request that exceeds a limit."""
        longest = max(map(len, texts), default=0)
        for size, limit, unit in (
            (len(texts), self.limits.batch_limit, "texts"),
            (longest, self.limits.char_limit, "characters"),
        ):
            if size > limit:
                exceeded = f"request ({size}) exceeds text limit ({limit}) of {unit}"
                raise http_error(f"Invalid request: {exceeded}")

    async def translate(
        self, served: ServedModel, texts: list[str], alternatives: int = 0
    ) -> list[TextTranslation]:
        """Translates texts, with at most so many alternatives of each."""
        documents = await self.split(served, texts)
        sentences = [s for document in documents for s in document.sentences]
        run = served.batcher.run
        best = await run(served.model.translate_any_length, sentences)
        others = [[]] * len(sentences)
        if alternatives and ALTERNATIVES in served.model.features:
            find = served.model.find_alternatives
            others = await run(find, sentences, alternatives + 1, is_admitted=True)
        self.metrics.count_sentences(served.name, sentences, best)
        found = zip(best, others, strict=True)
        results = [list(itertools.islice(found, len(d.places))) for d in documents]
        return [
            join(*pair, alternatives) for pair in zip(documents, results, strict=True)
        ]

    @limit_calls(MAX_HTML_REQUESTS)
    async def translate_html(
        self, served: ServedModel, texts: list[str]
    ) -> list[TextTranslation]:
        """Translates documents of HTML; see `translate`."""
        self.check(texts)
        check_markup(served, "html format is")
        make_steps = functools.partial(markup_steps, format="html")
        return [
            TextTranslation(each.content, [], each.counts["truncated"] > 0)
            for each in await self._translate_documents(served, make_steps, texts)
        ]

    async def translate_file(
        self, served: ServedModel, document: Document, suffix: str
    ) -> bytes:
        """Returns the translation of a document; `suffix` is for messages."""
        self.check([document.plain])
        if document.format:
            check_markup(served, f"{suffix} files are")
        (file,) = await self._translate_documents(served, translation_steps, [document])
        return file.content

    async def _translate_documents(
        self, served: ServedModel, make_steps: Callable, documents: list
    ) -> list:
        """Returns the results of the steps of documents, translated together."""
        model, run, is_admitted = served.model, served.batcher.run, False

        async def translate(sentences):
            nonlocal is_admitted
            found = await run(model.translate, sentences, is_admitted=is_admitted)
            is_admitted = True
            self.metrics.count_sentences(served.name, sentences, found)
            return found

        count = 0

        def split(texts):
            nonlocal count
            spans = find_sentences(texts, served.source, served.batcher.max_bytes)
            count += sum(map(len, spans))
            served.batcher.check_count(count)
            return spans

        # Without alignments there is only plain text, which has no placeholders.
        knows_placeholders = MARKUP in model.features and model.knows_placeholders
        options = {"split": split, "knows_placeholders": knows_placeholders}
        steps = [make_steps(each, **options) for each in documents]
        align = functools.partial(run, model.align, is_admitted=True)
        return await run_together(steps, translate, align)

    async def split(self, served: ServedModel, texts: list[str]) -> list[SplitText]:
        """Splits texts into sentences, unless there are more than may ever wait."""
        self.check(texts)
        found, count = [], 0
        for start in range(0, len(texts), SPLIT_TEXTS):
            some = texts[start : start + SPLIT_TEXTS]
            found += await split_in_turn(
                split_texts, some, served.source, served.batcher.max_bytes
            )
            count += sum(len(each.places) for each in found[start:])
            served.batcher.check_count(count)
        return found


def check_markup(served: ServedModel, what: str) -> None:
    """Refuses documents with tags, in words that begin with `what`."""
    if MARKUP not in served.model.features:
        raise http_error(f"{what} not supported: the model has no alignments")


def join(
    document: SplitText, results: list[tuple[Translation, list[str]]], alternatives: int
) -> TextTranslation:
    """Replaces the sentences of a document by their translations.

    The n-th alternative of a text consists of the n-th alternatives of its
    sentences, or of the best translation of a sentence that has fewer.
    """
    text = document.filled([best.text for best, _ in results])
    found = []
    for rank in range(alternatives):
        other = document.filled(
            [
                ([o for o in others if o != best.text] + [best.text] * (rank + 1))[rank]
                for best, others in results
            ]
        )
        if other not in (text, *found):
            found.append(other)
    return TextTranslation(text, found, any(best.truncated for best, _ in results))
