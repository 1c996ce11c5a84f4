"""Routes that need a model: LibreTranslate's API, and those of the web page.

Fields come as JSON or as a form; responses are JSON.
"""

import asyncio
import contextlib
import json
import pathlib
import re
from collections.abc import AsyncIterator, Callable

import fastapi
from fastapi.responses import Response, StreamingResponse

from documents.formats import FORMAT_OF_SUFFIX, read_document
from serve import schemas
from serve.access_control import AccessControl
from serve.fair_executor import limit_calls, run_in_turn
from serve.file_store import FileStore
from serve.languages import Detection
from serve.schemas import http_error
from serve.translation_service import ServedModel, TextTranslation, TranslationService
from translate.runtime.runtime import WORDS

AUTO = "auto"
JSON_OR_FORM = "application/json", schemas.URL_ENCODED
TAG = re.compile("<[^<>]*+>")
# Of a .docx file. Reading and writing one takes up to three seconds and, while its
# sentences are translated, 200 MiB.
MAX_TAGS = 150_000
MAX_CLIENT_FILES = 2  # Requests of a client at a time; others wait.


def make_post(app: fastapi.FastAPI, access: AccessControl) -> Callable:
    """Returns a decorator that adds a POST route to the application.

    Its function gets the checked fields of an admitted request, and the request.
    """

    def post(path: str, schema: type[schemas.RequestFields], *kinds: str):
        def add(answer):
            async def admit(request: fastapi.Request):
                access.check_address(request)
                asked = await schemas.read_request(schema, request)
                access.admit(request, asked.api_key, asked.cost)
                return await answer(asked, request)

            body = {"schema": schema.model_json_schema()}
            content = dict.fromkeys(kinds or JSON_OR_FORM, body)
            described = {"requestBody": {"required": True, "content": content}}
            options = {"name": answer.__name__, "openapi_extra": described}
            app.add_api_route(path, admit, methods=["POST"], **options)

        return add

    return post


def find_model(
    service: TranslationService,
    asked: schemas.LanguageFields,
    text: str,
    is_html: bool = False,
) -> tuple[ServedModel, Detection | None]:
    """Returns the model of a request, and its language if detected from `text`."""
    if asked.source.lower() != AUTO:
        return service.find(asked.source, asked.target), None
    detected = service.detector.find_source(TAG.sub(" ", text) if is_html else text)
    return service.find(detected.language, asked.target), detected


def add_translation(
    app: fastapi.FastAPI, post: Callable, service: TranslationService
) -> None:
    """Adds the routes that translate texts; `post` is that of `make_post`."""

    @post("/translate", schemas.TranslateFields)
    async def translate(asked, _):
        texts = asked.q if isinstance(asked.q, list) else [asked.q]
        is_html = asked.format == "html"
        served, detected = find_model(service, asked, "\n".join(texts), is_html)
        if asked.glossary:
            served = await run_in_turn(served.with_terms, asked.glossary)
        if is_html:
            translated = await service.translate_html(served, texts)
        else:
            translated = await service.translate(served, texts, asked.alternatives)
        return make_response(asked, translated, detected)

    @post("/detect", schemas.DetectFields)
    async def detect(asked, _):
        service.check([asked.q])
        return [each._asdict() for each in service.detector.detect(asked.q)]

    @app.post("/suggest")
    async def suggest():
        raise http_error("Suggestions are disabled on this server.", 403)


def make_response(
    asked: schemas.TranslateFields,
    translated: list[TextTranslation],
    detected: Detection | None,
) -> dict:
    """Returns the response of `/translate`."""
    columns = {"translatedText": [each.text for each in translated]}
    if detected:
        columns["detectedLanguage"] = [detected._asdict() for _ in translated]
    if asked.alternatives:
        columns["alternatives"] = [each.alternatives for each in translated]
    if any(each.truncated for each in translated):
        columns["truncated"] = [each.truncated for each in translated]
    if isinstance(asked.q, list):
        return columns
    return {name: column[0] for name, column in columns.items()}


def add_files(
    app: fastapi.FastAPI, post: Callable, service: TranslationService
) -> None:
    """Adds the routes that translate files."""
    files = FileStore()

    @post("/translate_file", schemas.FileFields, schemas.MULTIPART)
    @limit_calls(MAX_CLIENT_FILES)
    async def translate_file(asked, request):
        name = pathlib.PurePath(asked.file.name)
        suffix = name.suffix.lower()
        if suffix not in FORMAT_OF_SUFFIX:
            raise http_error("Invalid request: file format not supported")
        try:
            file = await run_in_turn(
                read_document, asked.file.content, FORMAT_OF_SUFFIX[suffix], MAX_TAGS
            )
        except ValueError as error:
            raise http_error(f"Invalid request: {error}") from None
        served, _ = find_model(service, asked, file.plain, file.format == "html")
        if asked.glossary:
            served = await run_in_turn(served.with_terms, asked.glossary)
        translated = await service.translate_file(served, file, suffix)
        stem = re.sub(r"[^\w-]+", "_", name.stem, flags=re.ASCII)[:80]
        target = served.name.rpartition(":")[2]
        key = files.add(f"{stem}_{target}{suffix}", translated)
        return {"translatedFileUrl": str(request.url_for("download_file", key=key))}

    @app.get("/download_file/{key}")
    async def download_file(key: str):
        file = files.find(key)
        if file is None:
            raise http_error("no such file, or it has expired", 404)
        headers = {
            "Content-Disposition": f'attachment; filename="{file.name}"',
            "X-Content-Type-Options": "nosniff",
        }
        return Response(file.content, 200, headers, "application/octet-stream")


def add_analysis_routes(post: Callable, service: TranslationService) -> None:
    """Adds the routes of the web page that LibreTranslate's API lacks."""

    @post("/sentences", schemas.TextFields)
    async def sentences(asked, _):
        served, _ = find_model(service, asked, asked.q)
        (document,) = await service.split(served, [asked.q])
        stack = contextlib.ExitStack()
        # Before the response starts, so that an error status is still possible.
        futures = stack.enter_context(
            served.batcher.submit(served.model.translate_any_length, document.sentences)
        )

        async def stream():
            """Yields lines of JSON: the document, then each translation in turn."""
            with stack:
                yield as_line(document._asdict())
                async for place, result in as_they_come(futures):
                    if isinstance(result, Exception):
                        yield as_line({"error": "Cannot translate text"})
                        return
                    sentence = document.sentences[place]
                    service.metrics.count_sentences(served.name, [sentence], [result])
                    yield as_line({"sentence": place, **result._asdict()})

        return StreamingResponse(stream(), media_type="application/x-ndjson")

    @post("/words", schemas.WordsFields)
    async def words(asked, _):
        served, _ = find_model(service, asked, "\n".join(asked.q))
        if WORDS not in served.model.features:
            message = "lacks words; export it with the signatures align and score"
            raise http_error(f"the model of {served.name} {message}")
        if len(asked.q) != len(asked.translations):
            raise http_error(
                "Invalid request: q and translations must have as many texts "
                f"each. Received: {len(asked.q)}, {len(asked.translations)}"
            )
        service.check(asked.q)
        service.check(asked.translations)
        pairs = list(zip(asked.q, asked.translations, strict=True))
        return await served.batcher.run(served.model.find_words, pairs)


def as_line(value: dict) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


async def as_they_come(futures: list[asyncio.Future]) -> AsyncIterator[tuple]:
    """Yields the index of each completed future, with its result or error."""
    places = {future: place for place, future in enumerate(futures)}
    pending = set(futures)
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for future in sorted(done, key=places.get):
            yield places[future], future.exception() or future.result()
