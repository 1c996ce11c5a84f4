"""Writes the configuration files of TF Serving and the README of an export.

The operator of the server owns these files: the export writes them once and
never overwrites them.
"""

import importlib.metadata
import pathlib
import re
from collections.abc import Iterable

from command_line.errors import UserError
from export.bundle.file_layout import SAMPLES, SERVER_FILES

# Batch sizes of the warm-up requests; the last is the server's maximum.
WARMUP_BATCH_SIZES = (1, 8, 32)

MODELS = """\
# tensorflow_model_server --model_config_file=models.config
# The newest version is served; a new folder with a higher number replaces it
# while the server runs. base_path is where the server sees this folder.
model_config_list {{
  config {{
    name: "{name}"
    base_path: "/models/{name}"
    model_platform: "tensorflow"
  }}
}}
"""

BATCHING = """\
# --enable_batching --batching_parameters_file=batching_parameters.txt
# Requests that come together are translated together. A request may have as
# many rows as max_batch_size. There are no allowed_batch_sizes: to the next of
# these the server would fill a batch up, with rows that are then translated.
max_batch_size {{ value: {largest} }}
# How long the first request waits for others.
batch_timeout_micros {{ value: 2000 }}
max_enqueued_batches {{ value: 100 }}
# Batches at a time; each takes as many cores as TensorFlow gives it.
num_batch_threads {{ value: 2 }}
"""

MONITORING = """\
# --monitoring_config_file=monitoring.config, on the port of the REST interface
prometheus_config {
  enable: true
  path: "/monitoring/prometheus/metrics"
}
"""

# The signature of this sample is not always exported.
COLUMNAR = """\
curl http://localhost:8501/v1/models/{name}:predict \\
    -d @1/{samples}/rest_columnar.json
"""

README = """\
# {name}

A translator for TF Serving: strings in, strings out. Each numbered folder is a
version, a SavedModel with its tokenizer and beam search.

These commands follow TF Serving's documentation; nobody ran them when this file
was written. The server must not be older than the TensorFlow that exported,
here {tensorflow} (`tensorflow` in `1/assets.extra/bundle.json`). Its releases
have the numbers of the package `tensorflow-serving-api`; {release} is one that
fits. `pip index versions tensorflow-serving-api` lists them all, and
https://hub.docker.com/r/tensorflow/serving/tags the images.

```
docker run -p 8500:8500 -p 8501:8501 -v "$PWD:/models/{name}" \\
    tensorflow/serving:{release} \\
    --model_config_file=/models/{name}/models.config \\
    --monitoring_config_file=/models/{name}/monitoring.config
```

Without Docker, with the path of this folder as `base_path` in `models.config`:

```
tensorflow_model_server --port=8500 --rest_api_port=8501 \\
    --model_config_file=models.config --monitoring_config_file=monitoring.config
```

Then, with the number of a version for `1`:

```
curl http://localhost:8501/v1/models/{name}:predict \\
    -d @1/{samples}/rest_row.json
{columnar}```

A file, from a checkout of keras_transformer:

```
python -m translate --server localhost:8500 --model-name {name} \\
    < text > translations
```

`*.answer.json` holds the outputs of the model at the time of the export.
`grpc.pb` is a serialized `PredictRequest`, `grpc.txt` the
same to read, `grpc.answer.txt` its `PredictResponse`. `references.json`, if
there is one, holds the reference translations of the same sentences.

* `models.config`: name and folder of the model.
* `batching_parameters.txt`: for `--enable_batching`, which serves many small
  requests at once. It refuses signatures whose options have no batch axis
  (`translate_nbest`), and requests for `translate_ids` must then be of equal
  length.
* `monitoring.config`: metrics for Prometheus, on the REST port, under
  `/monitoring/prometheus/metrics`.
* `1/assets.extra/bundle.json`: versions of packages, settings of the search,
  arguments of the training, the recorded scores on its validation set, and the
  SHA-256 of each file of the version.
* `1/assets.extra/tf_serving_warmup_requests`: requests that the server runs
  while it loads a version.
* `1/assets.extra/scores.json`: scores on test sets, if there are any.

`python -m export.check --export-dir .`, from a checkout of keras_transformer,
checks that a version is complete and has the outputs of the export;
`python -m translate.check_server --server localhost:8500 --export-dir .`, whether
that server does.
"""


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


def write_server_files(
    export_dir: pathlib.Path, name: str, signatures: Iterable[str]
) -> None:
    """Writes the configuration files that do not exist yet."""
    columnar = COLUMNAR if "translate_options" in signatures else ""
    texts = {
        "models.config": MODELS.format(name=name),
        "batching_parameters.txt": BATCHING.format(largest=WARMUP_BATCH_SIZES[-1]),
        "monitoring.config": MONITORING,
        "README.md": README.format(
            name=name,
            samples=SAMPLES,
            columnar=columnar.format(name=name, samples=SAMPLES),
            tensorflow=importlib.metadata.version("tensorflow"),
            release=server_release(),
        ),
    }
    for file_name in SERVER_FILES:
        path = export_dir / file_name
        if not path.exists():
            part = export_dir / f".{file_name}.part"
            part.write_text(texts[file_name], encoding="utf-8")
            part.replace(path)
