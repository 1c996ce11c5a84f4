"""Pydantic schemas of requests, and readers for JSON and form bodies."""

import asyncio
import codecs
import collections
import dataclasses
import textwrap
import urllib.parse
from collections.abc import Iterable
from typing import Annotated, Any

import fastapi
import pydantic
import pydantic_core
from python_multipart.multipart import FormParser, parse_options_header

from documents.docx_package import declared_size
from documents.formats import FORMAT_OF_SUFFIX

MAX_ALTERNATIVES = 10
# A text counts as one request more for each, so does a file for its bytes.
REQUEST_CHARACTERS = 1000
# The same for the text of a .docx file, which is mostly markup.
REQUEST_DOCX_BYTES = 20_000
FORMATS = ("text", "html")
URL_ENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
MAX_FIELDS = 1000  # Of a form or a query.
MAX_TERMS, MAX_TERM = 1000, 100  # Terms of a request, and characters of one.


def as_list(value: Any) -> Any:
    # In a form a list of one text is a text.
    return [value] if isinstance(value, str) else value


# One error is enough.
Texts = Annotated[list[str], pydantic.Field(fail_fast=True)]
Term = Annotated[str, pydantic.Field(max_length=MAX_TERM)]
Terms = Annotated[
    list[tuple[Term, Term]], pydantic.Field(max_length=MAX_TERMS, fail_fast=True)
]


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


def split_terms(value: Any) -> Any:
    # In a form they are text, as in a file.
    if not isinstance(value, str):
        return value
    lines = [x for x in value.splitlines() if x.strip() and not x.startswith("#")]
    if wrong := [line for line in lines if line.count("\t") != 1]:
        raise ValueError(
            "Invalid request: glossary: a line must be a term, a tab and its target "
            f"term. Received: {wrong[0][:80]}"
        )
    return [line.split("\t") for line in lines]


class GlossaryFields(LanguageFields):
    glossary: Annotated[Terms, pydantic.BeforeValidator(split_terms)] = pydantic.Field(
        [],
        description="Terms and their target terms; in a form, a text of lines with a "
        "term, a tab and its target term",
    )


class TranslateFields(GlossaryFields):
    q: str | Texts
    format: str = pydantic.Field("text", json_schema_extra={"enum": FORMATS})
    alternatives: int = pydantic.Field(
        0, description="Other translations of each text; there are none of html"
    )

    @pydantic.field_validator("format")
    @classmethod
    def check_format(cls, value: str) -> str:
        if value not in FORMATS:
            raise ValueError(f"{value[:20]} format is not supported")
        return value

    @pydantic.field_validator("alternatives", mode="before")
    @classmethod
    def clamp_alternatives(cls, value: Any) -> int:
        try:
            return min(max(int(value), 0), MAX_ALTERNATIVES)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                "Invalid request: alternatives parameter is not a number"
            ) from None


class TextFields(LanguageFields):
    q: str


class WordsFields(LanguageFields):
    q: Annotated[Texts, pydantic.BeforeValidator(as_list)]
    translations: Annotated[Texts, pydantic.BeforeValidator(as_list)]


class DetectFields(RequestFields):
    q: str


@dataclasses.dataclass(frozen=True)
class UploadedFile:
    """A file that came with a form."""

    name: str
    content: bytes


FILE_SCHEMA = {
    "type": "string",
    "format": "binary",
    "description": f"A file: {', '.join(FORMAT_OF_SUFFIX)}",
}


class FileFields(GlossaryFields):
    file: Annotated[Any, pydantic.WithJsonSchema(FILE_SCHEMA)]

    @pydantic.field_validator("file")
    @classmethod
    def check_file(cls, value: Any) -> UploadedFile:
        if not isinstance(value, UploadedFile):
            raise ValueError(
                f"Invalid request: file must be one file, sent as {MULTIPART}"
            )
        return value

    @property
    def cost(self) -> int:
        content = self.file.content
        if self.file.name.lower().endswith(".docx"):
            return 1 + declared_size(content) // REQUEST_DOCX_BYTES
        return 1 + len(content) // REQUEST_CHARACTERS


async def read_request(
    cls: type[RequestFields], request: fastapi.Request
) -> RequestFields:
    """Returns the checked fields of a request; refuses in LibreTranslate's words."""
    kind, query = request.headers.get("content-type", ""), request.scope["query_string"]
    # A large body takes a while.
    return await asyncio.to_thread(check_fields, cls, kind, await request.body(), query)


def check_fields(
    cls: type[RequestFields], kind: str, body: bytes, query: bytes
) -> RequestFields:
    """Returns the checked fields of a body of a content type, and of the query."""
    fields = read_fields(kind, body, query)
    # An empty field is a missing one.
    given = {n: value for n, value in fields.items() if value not in (None, "", [])}
    try:
        return cls.model_validate(given)
    except pydantic.ValidationError as error:
        raise http_error(describe_error(error)) from None


def read_fields(kind: str, body: bytes, query: bytes) -> dict[str, Any]:
    """Returns the fields of JSON, or of a form and the query; all text is UTF-8."""
    encoded, parameters = parse_options_header(kind)
    media_type = encoded.decode("latin-1")
    charset = parameters.get(b"charset", b"utf-8")
    if charset.lower() not in (b"utf-8", b"utf8"):
        raise http_error(
            "Invalid request: the charset must be utf-8. "
            f"Received: {charset[:20].decode('latin-1')}",
            415,
        )
    is_empty = not media_type and not body
    if media_type not in (URL_ENCODED, MULTIPART) and not is_empty:
        return read_json(body)
    try:
        if media_type == MULTIPART:
            pairs = read_multipart(body, parameters.get(b"boundary"))
        else:
            pairs = read_url_encoded(body)
        return group(pairs) | group(read_url_encoded(query))
    except ValueError as error:
        message = textwrap.shorten(str(error), 100)
        raise http_error(f"Invalid request: {message}") from None


def read_json(body: bytes) -> dict[str, Any]:
    try:
        # Unlike Python's parser, it refuses lone surrogates.
        fields = pydantic_core.from_json(body.removeprefix(codecs.BOM_UTF8))
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise http_error("Invalid JSON format")
    return fields


def read_url_encoded(content: bytes) -> list[tuple[str, str]]:
    return urllib.parse.parse_qsl(
        content.decode(),
        keep_blank_values=True,
        errors="strict",
        max_num_fields=MAX_FIELDS,
    )


def read_multipart(
    body: bytes, boundary: bytes | None
) -> list[tuple[str, str | UploadedFile]]:
    pairs = []

    def add(name, value):
        if len(pairs) == MAX_FIELDS:
            raise ValueError(f"a form must have at most {MAX_FIELDS} fields")
        pairs.append((name.decode(), value))

    def add_text(field):
        add(field.field_name, (field.value or b"").decode())

    def add_file(file):
        content = file.file_object.getvalue()
        add(file.field_name, UploadedFile(file.file_name.decode(), content))

    in_memory = {"MAX_MEMORY_FILE_SIZE": len(body)}
    parser = FormParser(
        MULTIPART, add_text, add_file, boundary=boundary, config=in_memory
    )
    parser.write(body)
    parser.finalize()
    return pairs


def group(pairs: Iterable[tuple[str, str | UploadedFile]]) -> dict[str, Any]:
    """Returns fields by their names; those of one name are a list."""
    fields = collections.defaultdict(list)
    for name, value in pairs:
        # Browsers send CRLF line ends in forms.
        fields[name].append(
            value.replace("\r\n", "\n") if isinstance(value, str) else value
        )
    return {name: x if len(x) > 1 else x[0] for name, x in fields.items()}


def describe_error(error: pydantic.ValidationError) -> str:
    """Returns the first validation error in one line."""
    first = error.errors()[0]
    name = first["loc"][0]
    if first["type"] == "missing" and first["loc"] == (name,):
        return f"Invalid request: missing {name} parameter"
    if first["type"] == "value_error":  # Ours, in LibreTranslate's words.
        return str(first["ctx"]["error"])
    received = ascii(first["input"])[:80]
    return f"Invalid request: {name}: {first['msg']}. Received: {received}"


def http_error(message: str, status: int = 400) -> fastapi.HTTPException:
    return fastapi.HTTPException(status, message)
