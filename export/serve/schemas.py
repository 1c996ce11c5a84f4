"""Pydantic schemas of requests, and readers for JSON and form bodies."""

import codecs
import textwrap
from collections.abc import Callable
from typing import Any
from typing import Literal
from typing import NamedTuple

import fastapi
import pydantic
import pydantic_core

MAX_ALTERNATIVES = 10
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class RequestFields(pydantic.BaseModel):
    """Fields of any request; unknown ones are ignored."""

    api_key: str = ""


class LanguageFields(RequestFields):
    source: str
    target: str


class TranslateFields(LanguageFields):
    q: str | list[str]
    format: Literal["text", "html"] = "text"
    alternatives: int = pydantic.Field(0, ge=0, le=MAX_ALTERNATIVES)


class TextFields(LanguageFields):
    q: str


class WordsFields(LanguageFields):
    q: list[str]
    translations: list[str]


class DetectFields(RequestFields):
    q: str


class UploadedFile(NamedTuple):
    """A file that came with a form."""

    name: str
    content: bytes


class FileFields(LanguageFields):
    file: UploadedFile


def request_reader(cls: type[RequestFields]) -> Callable:
    """Returns a FastAPI dependency that reads the fields of a request."""

    async def read(request: fastapi.Request) -> cls:
        fields = await read_fields(request)
        try:
            return cls.model_validate(fields)
        except pydantic.ValidationError as error:
            raise refuse(describe_error(error)) from None

    return read


async def read_fields(request: fastapi.Request) -> dict[str, Any]:
    """Returns the fields of a request that are not empty.

    Raises:
        HTTPException: If the body does not match its content type.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind in FORMS:
        async with request.form() as form:
            fields = {name: await read_field(form[name]) for name in form}
    else:
        try:
            # Unlike Python's parser, it refuses lone surrogates.
            body = (await request.body()).removeprefix(codecs.BOM_UTF8)
            fields = pydantic_core.from_json(body)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            raise refuse("Invalid JSON format")
    return {
        name: value
        for name, value in fields.items()
        if value is not None and value != "" and value != []
    }


async def read_field(value: str | fastapi.UploadFile) -> str | UploadedFile:
    if isinstance(value, str):
        # Browsers send CRLF line ends in forms.
        return value.replace("\r\n", "\n")
    return UploadedFile(value.filename or "", await value.read())


def describe_error(error: pydantic.ValidationError) -> str:
    """Returns the first validation error in one line."""
    fault = error.errors()[0]
    name = fault["loc"][0]
    if fault["type"] == "missing":
        return f"Invalid request: missing {name} parameter"
    received = textwrap.shorten(ascii(fault["input"]), 80)
    return f"Invalid request: {name}: {fault['msg']}. Received: {received}"


def refuse(message: str, status: int = 400) -> fastapi.HTTPException:
    return fastapi.HTTPException(status, message)


def describe_body(cls: type[RequestFields], *kinds: str) -> dict:
    """Returns the OpenAPI description of a request's body."""
    schema = {"schema": cls.model_json_schema()}
    content = dict.fromkeys(kinds or ("application/json", FORMS[0]), schema)
    return {"requestBody": {"required": True, "content": content}}
