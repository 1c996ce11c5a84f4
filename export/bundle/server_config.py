"""Writes the configuration files of TF Serving and the README of an export.

The operator of the server owns these files: the export writes them once and
never overwrites them.
"""

import importlib.metadata
import pathlib
import re
import string

from command_line.errors import UserError
from command_line.text_files import write_atomically
from export.bundle.file_layout import SERVER_FILES

# Batch sizes of the warm-up requests; the last is the server's maximum.
WARMUP_BATCH_SIZES = (1, 8, 32)

TEMPLATES = pathlib.Path(__file__).parent / "server_files"


def choose_name(export_dir: pathlib.Path, given: str | None) -> str:
    """Returns the name of the model: the given one, or that of the folder.

    It must be valid in a URL, and that of `models.config` if this exists.
    """
    name = given or export_dir.resolve().name
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise UserError(
            "--model-name must be of letters, digits, '_', '.' and '-'. "
            f"Received: {name!r}"
        )
    path = export_dir / "models.config"
    names = re.findall(
        r"""^\s*name:\s*["'](.*)["']""",
        path.read_text(encoding="utf-8") if path.exists() else "",
        re.MULTILINE,
    )
    if names and name not in names:
        raise UserError(
            f"--model-name must be {' or '.join(names)}, as in {path}. Received: {name}"
        )
    return name


def server_release() -> str:
    """Returns a release of TF Serving that is at least as new as TensorFlow.

    This is the version of `tensorflow-serving-api`, or, if that package is
    older, the first release of TensorFlow's minor version.
    """
    package, tensorflow = (
        re.findall(r"\d+", importlib.metadata.version(name))
        for name in ("tensorflow-serving-api", "tensorflow")
    )
    if [*map(int, package[:2])] < [*map(int, tensorflow[:2])]:
        package = [*tensorflow[:2], "0"]
    return ".".join(package[:3])


def write_server_files(export_dir: pathlib.Path, name: str) -> None:
    """Writes the configuration files that do not exist yet."""
    values = {
        "name": name,
        "largest": WARMUP_BATCH_SIZES[-1],
        "tensorflow": importlib.metadata.version("tensorflow"),
        "release": server_release(),
    }
    for file_name in SERVER_FILES:
        path = export_dir / file_name
        if not path.exists():
            template = string.Template((TEMPLATES / file_name).read_text("utf-8"))
            write_atomically(path, template.substitute(values).encode())
