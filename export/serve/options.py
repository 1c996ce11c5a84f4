"""Options of `python -m export.serve`."""

import dataclasses
import pathlib

from command_line.errors import UserError
from command_line.options import option
from command_line.options import part
from command_line.options import positive
from export.client import ClientOptions
from export.serve.api_keys import read_keys
from export.serve.languages import Pair
from export.serve.languages import read_pair


@dataclasses.dataclass(frozen=True, kw_only=True)
class HttpOptions:
    """Address, API keys and CORS."""

    host: str = option(
        "127.0.0.1", "address to listen at; 0.0.0.0 means all addresses"
    )
    port: int = option(5000, "port to listen at, 0 for any that is free", int)
    api_keys: pathlib.Path | None = option(
        None,
        "file of API keys, one a line (default: no key is needed)",
        kind=pathlib.Path,
        metavar="FILE",
    )
    cors_origin: tuple[str, ...] = option(
        (),
        "allowed CORS origins, such as https://example.org (default: none)",
        nargs="+",
        metavar="URL",
    )

    def __post_init__(self):
        if not 0 <= self.port < 2**16:
            raise UserError(
                f"--port must be between 0 and 65535. Received: {self.port}"
            )
        if self.api_keys:
            read_keys(self.api_keys)  # Check before models load.


@dataclasses.dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """Limits on the size of requests and of the queue."""

    char_limit: int = option(
        20_000, "characters of each text of a request", positive(int)
    )
    batch_limit: int = option(100, "texts of a request", positive(int))
    byte_limit: int = option(
        2**20, "bytes of a request, files included", positive(int)
    )
    queue_limit: int = option(
        2000,
        "sentences in the queue of a model; further requests get status 429",
        positive(int),
    )
    batch_tokens: int = option(
        1024,
        "source tokens that a model translates at a time, one counted as four "
        "bytes",
        positive(int),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """All options of the command."""

    pair: list[Pair] = option(
        help="languages and what translates them: an export's folder, or the "
        "address of a TF Serving, [MODEL@]HOST:PORT or "
        "[MODEL@]https://…; once for each pair",
        kind=read_pair,
        action="append",
        metavar="SOURCE:TARGET=PLACE",
    )
    http: HttpOptions = part("who may ask")
    limits: LimitOptions = part("how much")
    client: ClientOptions = part("with the address of a TF Serving")
