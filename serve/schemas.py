"""Pydantic schemas of requests, and readers for JSON and form bodies."""

import codecs
import textwrap
from typing import Annotated, Any, NamedTuple

import fastapi
import pydantic
import pydantic_core

from documents.docx_package import unpacked_size
from documents.formats import FORMAT_OF_SUFFIX

MAX_ALTERNATIVES = 10
# A text counts as one request more for each, so does a file for its bytes.
REQUEST_CHARACTERS = 1000
# The same for the text of a .docx file, which is mostly markup.
REQUEST_DOCX_BYTES = 20_000
FORMATS = ("text", "html")
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
OWN_FAULT = "own_fault"  # Its message is complete.


def fault(message: str) -> pydantic_core.PydanticCustomError:
    """Returns a validation error with the message of LibreTranslate."""
    return pydantic_core.PydanticCustomError(
        OWN_FAULT, "{message}", {"message": message}
    )


class RequestFields(pydantic.BaseModel):
    """Fields of any request; unknown ones are ignored."""

    api_key: str = ""

    @property
    def cost(self) -> int:
        """How many requests this one counts as."""
        texts = getattr(self, "q", "")
        texts = texts if isinstance(texts, list) else [texts]
        return sum(1 + len(text) // REQUEST_CHARACTERS for text in texts)


class LanguageFields(RequestFields):
    source: str
    target: str


class TranslateFields(LanguageFields):
    q: str | list[str]
    format: str = pydantic.Field("text", json_schema_extra={"enum": FORMATS})
    alternatives: int = 0

    @pydantic.field_validator("format")
    @classmethod
    def check_format(cls, value: str) -> str:
        if value not in FORMATS:
            raise fault(f"{value[:20]} format is not supported")
        return value

    @pydantic.field_validator("alternatives", mode="before")
    @classmethod
    def clamp_alternatives(cls, value: Any) -> int:
        try:
            return min(max(int(value), 0), MAX_ALTERNATIVES)
        except (TypeError, ValueError, OverflowError):
            raise fault(
                "Invalid request: alternatives parameter is not a number"
            ) from None


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


FILE_SCHEMA = {
    "type": "string",
    "format": "binary",
    "description": f"A file: {', '.join(FORMAT_OF_SUFFIX)}",
}


class FileFields(LanguageFields):
    file: Annotated[UploadedFile, pydantic.WithJsonSchema(FILE_SCHEMA)]

    @property
    def cost(self) -> int:
        content = self.file.content
        if self.file.name.lower().endswith(".docx"):
            return 1 + unpacked_size(content) // REQUEST_DOCX_BYTES
        return 1 + len(content) // REQUEST_CHARACTERS


async def read_request(
    cls: type[RequestFields], request: fastapi.Request
) -> RequestFields:
    """Returns the checked fields of a request.

    Raises:
        HTTPException: If one is missing or wrong, in LibreTranslate's words,
            or if the body does not match its content type.
    """
    fields = await read_fields(request)
    # An empty field is a missing one.
    given = {
        name: value for name, value in fields.items() if value not in (None, "", [])
    }
    try:
        return cls.model_validate(given)
    except pydantic.ValidationError as error:
        raise http_error(describe_error(error)) from None


async def read_fields(request: fastapi.Request) -> dict[str, Any]:
    """Returns the fields of a body of JSON, or those of a form and of the query."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in FORMS:
        async with request.form() as form:
            fields = {name: await read_field(form[name]) for name in form}
        return fields | dict(request.query_params)
    body = await request.body()
    if not kind and not body:
        return dict(request.query_params)
    try:
        # Unlike Python's parser, it refuses lone surrogates.
        fields = pydantic_core.from_json(body.removeprefix(codecs.BOM_UTF8))
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise http_error("Invalid JSON format")
    return fields


async def read_field(value: str | fastapi.UploadFile) -> str | UploadedFile:
    if isinstance(value, str):
        # Browsers send CRLF line ends in forms.
        return value.replace("\r\n", "\n")
    return UploadedFile(value.filename or "", await value.read())


def describe_error(error: pydantic.ValidationError) -> str:
    """Returns the first validation error in one line."""
    first = error.errors()[0]
    name = first["loc"][0]
    if first["type"] == "missing":
        return f"Invalid request: missing {name} parameter"
    if first["type"] == OWN_FAULT:
        return first["msg"]
    received = textwrap.shorten(ascii(first["input"]), 80)
    return f"Invalid request: {name}: {first['msg']}. Received: {received}"


def http_error(message: str, status: int = 400) -> fastapi.HTTPException:
    return fastapi.HTTPException(status, message)


def describe_body(cls: type[RequestFields], *kinds: str) -> dict:
    """Returns the OpenAPI description of a request's body."""
    schema = {"schema": cls.model_json_schema()}
    content = dict.fromkeys(kinds or ("application/json", FORMS[0]), schema)
    return {"requestBody": {"required": True, "content": content}}
