"""Routes that need a model: LibreTranslate's API, and those of the web page.

Fields come as JSON or as a form; responses are JSON.
"""

import asyncio
import contextlib
import json
import pathlib
import re
from collections.abc import AsyncIterator
from typing import Annotated

import fastapi
from fastapi.responses import Response, StreamingResponse

from documents.formats import FORMAT_OF_SUFFIX, Document, read_document
from serve import schemas
from serve.access_control import AccessControl
from serve.document_queue import run_in_thread
from serve.file_store import FileStore
from serve.language_detection import Detection
from serve.schemas import http_error
from serve.translation_service import Route, Translated, TranslationService
from translate.runtime.runtime import REPORT, WORDS

AUTO = "auto"
TAG = re.compile("<[^<>]*+>")
# Media types of translated files; no browser may run one.
TEXT = "text/plain; charset=utf-8"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
)


def admitted(cls: type[schemas.RequestFields], access: AccessControl):
    """Returns a FastAPI dependency: the fields of an admitted request."""

    async def admit(request: fastapi.Request):
        asked = await schemas.read_request(cls, request)
        access.admit(request, asked.api_key, asked.cost)
        return asked

    return Annotated[cls, fastapi.Depends(admit)]


def add_translation(
    app: fastapi.FastAPI, service: TranslationService, access: AccessControl
) -> None:
    """Adds the routes that translate texts."""

    @app.post(
        "/translate", openapi_extra=schemas.describe_body(schemas.TranslateFields)
    )
    async def translate(asked: admitted(schemas.TranslateFields, access)):
        is_list = isinstance(asked.q, list)
        texts = asked.q if is_list else [asked.q]
        is_html = asked.format == "html"
        sample = "\n".join(texts)
        route, detected = find_route(
            service, asked, TAG.sub(" ", sample) if is_html else sample
        )
        if is_html:
            translated = await service.translate_html(route, texts)
        else:
            translated = await service.translate(route, texts, asked.alternatives)
        return describe(asked, translated, detected, is_list)

    @app.post("/detect", openapi_extra=schemas.describe_body(schemas.DetectFields))
    async def detect(asked: admitted(schemas.DetectFields, access)):
        return [each._asdict() for each in service.detector.detect(asked.q)]

    @app.post("/suggest")
    async def suggest():
        raise http_error("Suggestions are disabled on this server.", 403)


def find_route(
    service: TranslationService, asked: schemas.LanguageFields, text: str
) -> tuple[Route, Detection | None]:
    """Returns the route of a request, and its language if that is detected.

    Args:
        service: The service.
        asked: The fields of the request.
        text: Sample for language detection.

    Raises:
        HTTPException: If the pair is not served.
    """
    if asked.source.lower() != AUTO:
        return service.find(asked.source, asked.target), None
    detected = service.detector.find_source(text)
    return service.find(detected.language, asked.target), detected


def describe(
    asked: schemas.TranslateFields,
    translated: list[Translated],
    detected: Detection | None,
    is_list: bool,
) -> dict:
    """Returns the response of `/translate`."""
    columns = {"translatedText": [each.text for each in translated]}
    if detected:
        columns["detectedLanguage"] = [detected._asdict() for _ in translated]
    if asked.alternatives:
        columns["alternatives"] = [each.alternatives for each in translated]
    if any(each.truncated for each in translated):
        columns["truncated"] = [each.truncated for each in translated]
    if is_list:
        return columns
    return {name: column[0] for name, column in columns.items()}


async def read_file(content: bytes, suffix: str) -> Document:
    """Reads a file by the end of its name.

    Raises:
        HTTPException: If its format is unknown, or the file is damaged.
    """
    if suffix not in FORMAT_OF_SUFFIX:
        raise http_error("Invalid request: file format not supported")
    try:
        return await run_in_thread(read_document, content, FORMAT_OF_SUFFIX[suffix])
    except ValueError as error:
        raise http_error(f"Invalid request: {error}") from None


def add_files(
    app: fastapi.FastAPI, service: TranslationService, access: AccessControl
) -> None:
    """Adds the routes that translate files."""
    files = FileStore()

    @app.post(
        "/translate_file",
        openapi_extra=schemas.describe_body(schemas.FileFields, "multipart/form-data"),
    )
    async def translate_file(
        request: fastapi.Request, asked: admitted(schemas.FileFields, access)
    ):
        name = pathlib.PurePath(asked.file.name)
        suffix = name.suffix.lower()
        file = await read_file(asked.file.content, suffix)
        is_html = file.format == "html"
        route, _ = find_route(
            service, asked, TAG.sub(" ", file.plain) if is_html else file.plain
        )
        translated = await service.translate_file(route, file, suffix)
        stem = re.sub(r"[^\w-]+", "_", name.stem, flags=re.ASCII)[:80]
        target = route.name.rpartition(":")[2]
        key = files.add(f"{stem}_{target}{suffix}", translated)
        url = request.url_for("download_file", key=key)
        return {"translatedFileUrl": str(url)}

    @app.get("/download_file/{key}")
    async def download_file(key: str):
        file = files.find(key)
        if file is None:
            raise http_error("no such file, or it has expired", 404)
        disposition = f'attachment; filename="{file.name}"'
        return Response(
            file.content,
            media_type=DOCX if file.name.endswith(".docx") else TEXT,
            headers={
                "Content-Disposition": disposition,
                "X-Content-Type-Options": "nosniff",
            },
        )


def add_analysis_routes(
    app: fastapi.FastAPI, service: TranslationService, access: AccessControl
) -> None:
    """Adds the routes of the web page that LibreTranslate's API lacks."""

    @app.post("/sentences", openapi_extra=schemas.describe_body(schemas.TextFields))
    async def sentences(asked: admitted(schemas.TextFields, access)):
        route, _ = find_route(service, asked, asked.q)
        (document,) = await service.split(route, [asked.q])
        stack = contextlib.ExitStack()
        # Before the response starts, so that an error status is still possible.
        futures = stack.enter_context(
            route.batcher.submit(route.model.translate_any_length, document.sentences)
        )
        lines = stream_sentences(service, route, document, futures, stack)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    @app.post("/words", openapi_extra=schemas.describe_body(schemas.WordsFields))
    async def words(asked: admitted(schemas.WordsFields, access)):
        route, _ = find_route(service, asked, "\n".join(asked.q))
        check_feature(route, WORDS)
        if len(asked.q) != len(asked.translations):
            raise http_error(
                "Invalid request: q and translations must have as many texts "
                f"each. Received: {len(asked.q)}, {len(asked.translations)}"
            )
        service.check(asked.q)
        service.check(asked.translations)
        pairs = list(zip(asked.q, asked.translations, strict=True))
        return await route.batcher.run(route.model.find_words, pairs)

    @app.post("/report", openapi_extra=schemas.describe_body(schemas.TextFields))
    async def report(asked: admitted(schemas.TextFields, access)):
        route, _ = find_route(service, asked, asked.q)
        check_feature(route, REPORT)
        (document,) = await service.split(route, [asked.q])
        if not document.places:
            raise http_error("Invalid request: q must hold some text")
        (page,) = await route.batcher.run(route.model.write_reports, [asked.q])
        return Response(
            page,
            media_type="text/html",
            headers={"Content-Security-Policy": REPORT_POLICY},
        )


async def stream_sentences(service, route, document, futures, stack):
    """Yields lines of JSON: the document, then each translation in turn."""
    sentences = document.sentences
    with stack:
        yield as_line(document._asdict())
        async for place, result in as_they_come(futures):
            if isinstance(result, Exception):
                yield as_line({"error": "Cannot translate text"})
                return
            service.record_metrics(route, [sentences[place]], [result])
            yield as_line({"sentence": place, **result._asdict()})


def check_feature(route: Route, name: str) -> None:
    if name not in route.model.features:
        raise http_error(
            f"the model of {route.name} lacks {name}; export it with `--signatures all`"
        )


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
