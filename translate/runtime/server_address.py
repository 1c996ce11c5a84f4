"""Parses the address of a server, with its TLS certificates and token."""

import dataclasses
import pathlib
import re
import ssl
import urllib.parse

from command_line.errors import UserError

PORTS = {"http": 80, "https": 443}


@dataclasses.dataclass(frozen=True)
class Address:
    """Address of a server, with TLS settings and credentials."""

    host: str
    port: int
    prefix: str = ""  # Of TF Serving's paths, such as `/mt`.
    tls: bool = False
    certificates: str | None = None  # PEM; `None` for those of grpcio.
    token: str | None = dataclasses.field(default=None, repr=False)

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def mask_token(self, message: str) -> str:
        """Returns a server's message with its address; the token is masked."""
        if self.token:
            message = message.replace(self.token, "***")
        return f"{self.netloc}{self.prefix}, {message}"


def read_address(
    server: str,
    ca_certificate: pathlib.Path | None = None,
    token_file: pathlib.Path | None = None,
) -> Address:
    """Parses `HOST:PORT`, `http://HOST[:PORT][/PREFIX]` or `https://…`.

    The files hold the certificates to trust, and the token.

    Raises:
        UserError: If the address or a file is invalid.
    """
    is_url = "://" in server
    try:
        url = urllib.parse.urlsplit(server if is_url else f"http://{server}")
        port = url.port or (PORTS.get(url.scheme) if is_url else None)
    except ValueError:  # Such as `[::1`, or the port `x`.
        url, port = urllib.parse.urlsplit(""), None
    fits = (is_url or not url.path) and url.scheme in PORTS
    bare = "@" not in server and not (url.query or url.fragment)
    if not (url.hostname and port and fits and bare):
        # The part before an @ may hold a password.
        received = server.rpartition("@")[2]
        raise UserError(
            "--server must be HOST:PORT or https://HOST[:PORT][/PREFIX]. "
            f"Received: {received}"
        )
    tls = url.scheme == "https"
    if ca_certificate and not tls:
        raise UserError(
            f"--ca-certificate needs a --server https://…. Received: {server}"
        )
    return Address(
        url.hostname,
        port,
        url.path.rstrip("/"),
        tls,
        ca_certificate and read_certificates(ca_certificate),
        token_file and read_token(token_file),
    )


def read_certificates(path: pathlib.Path) -> str:
    """Reads certificates in PEM form; refuses a file that holds none."""
    try:
        text = path.read_text("ascii")
        # Of a text without any, Python would take the system's.
        if "BEGIN CERTIFICATE" not in text:
            raise ssl.SSLError("which has no certificate")
        ssl.create_default_context(cadata=text)
    except (UnicodeError, ssl.SSLError) as error:
        raise UserError(
            f"--ca-certificate must be PEM. Received: {path}, {error}"
        ) from None
    return text


def read_token(path: pathlib.Path) -> str:
    """Reads a token, which no error message shows."""
    token = path.read_bytes().strip().decode("latin-1")
    if not re.fullmatch("[!-~]+", token):
        raise UserError(
            "--token-file must hold one word of ASCII characters. "
            f"Received: {path}, of something else"
        )
    return token


def open_channel(address: Address):
    """Returns a gRPC channel to the server."""
    import grpc  # Optional dependency.

    options = {
        "grpc.max_receive_message_length": -1,
        # By default the delay grows, also for a server that restarts quickly.
        "grpc.max_reconnect_backoff_ms": 1000,
    }
    options = list(options.items())
    if not address.tls:
        return grpc.insecure_channel(address.netloc, options)
    trusted = address.certificates and address.certificates.encode()
    credentials = grpc.ssl_channel_credentials(trusted)
    return grpc.secure_channel(address.netloc, credentials, options)
