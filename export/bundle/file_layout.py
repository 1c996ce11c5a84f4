"""Paths of the files of an export, and their digests.

    EXPORT_DIR/README.md, models.config, batching_parameters.txt,
               monitoring.config
    EXPORT_DIR/1/saved_model.pb, variables/, ...
    EXPORT_DIR/1/assets.extra/bundle.json, tf_serving_warmup_requests,
                              samples/

TF Serving loads folders whose name is a number, reads the warm-up requests, and
ignores the other files.
"""

import hashlib
import pathlib

# The first file of each format identifies it.
SAVED_MODEL = "saved_model.pb"
CTRANSLATE2_MODEL = "model.bin"
LITERT_STEP = "step.tflite"
LITERT_ENCODER = "encoder.tflite"
LITERT_CONFIG = "config.json"
LITERT_SAMPLES = "samples.json"
TOKENIZER_FILE = "tokenizer.model"
TARGET_TOKENIZER_FILE = "target_tokenizer.model"
EXTRA = "assets.extra"
BUNDLE = f"{EXTRA}/bundle.json"
WARMUP = f"{EXTRA}/tf_serving_warmup_requests"
SAMPLES = f"{EXTRA}/samples"
SERVER_FILES = (
    "README.md",
    "batching_parameters.txt",
    "models.config",
    "monitoring.config",
)
UNLISTED = (BUNDLE, LITERT_CONFIG)  # They hold the digests.


def list_files(folder: pathlib.Path) -> dict[str, dict]:
    """Returns size and SHA-256 of the files of a version, by relative name."""
    files = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in UNLISTED:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            files[name] = {"bytes": path.stat().st_size, "sha256": digest}
    return files
