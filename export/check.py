"""Verifies an export: digests, ops, warm-up requests and recorded samples.

A version that is incomplete or changed is neither loaded nor run. The digests
are not signed: they detect accidents, but not an attacker who writes new ones.

The command needs `tensorflow`, `tensorflow_text` and the messages of TF
Serving, but none of the model's code.
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

from command_line.errors import describe_error, exit_on_user_error
from command_line.options import option, parse_command
from command_line.progress import show_progress
from export.bundle import file_layout
from export.bundle.graph_inspection import (
    compiled_functions,
    read_meta_graph,
    served_signatures,
    unsupported_ops,
    used_ops,
)
from export.bundle.predict_messages import read_tensors
from export.bundle.sample_requests import (
    abbreviate,
    describe_differences,
    is_close,
    read_samples,
)
from export.bundle.versions import EXPORT_DIR, find_version
from export.bundle.warmup_requests import MAX_RECORDS, read_warmup
from export.litert.translator_loading import load_translator

LEFT_OUT = "left out: a version that has changed is not run"
# The checks that run the model.
RUNTIME_CHECKS = ("session", "warm-up", "samples")


@dataclasses.dataclass
class Check:
    """Result of one check: lines of what was checked, and of each failure."""

    name: str
    notes: list[str] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)
    left_out: str = ""  # The reason for skipping the check.


class SessionModel:
    """A version that is loaded as TF Serving loads it."""

    def __init__(self, folder: pathlib.Path):
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            meta_graph = tf.compat.v1.saved_model.loader.load(
                self._session, ["serve"], str(folder)
            )
        self.signatures = served_signatures(meta_graph)

    def run(
        self, signature: str, inputs: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Returns all outputs of a signature."""
        names = self.signatures[signature]
        return self._session.run(
            {key: tensor.name for key, tensor in names.outputs.items()},
            {names.inputs[key].name: value for key, value in inputs.items()},
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckOptions:
    export_dir: pathlib.Path = option(**EXPORT_DIR)
    version: int | None = option(None, "which one (default: the newest)", int)


def check_version(folder: pathlib.Path) -> Iterator[Check]:
    """Runs the checks of a version and yields their results."""
    check, files = check_loading(
        "bundle", lambda: read_digests(folder / file_layout.BUNDLE)
    )
    checks = [check]
    if files is not None:
        checks.append(check_files(folder, files))
    check, meta_graph = check_loading("graph", lambda: read_meta_graph(folder))
    checks.append(check_ops(meta_graph) if meta_graph else check)
    yield from checks
    yield check_server_files(folder.parent)
    if meta_graph:
        yield check_xla(meta_graph)
    if any(check.problems for check in checks):
        for name in RUNTIME_CHECKS:
            yield Check(name, left_out=LEFT_OUT)
        return
    check, model = check_loading("session", lambda: SessionModel(folder))
    if model is None:
        yield check
        return
    yield Check("session", [f"{len(model.signatures)} signatures"])
    yield check_warmup(model.run, folder / file_layout.WARMUP)
    yield check_samples(model.run, model.signatures, folder)


def check_loading(name: str, load: Callable) -> tuple[Check, object]:
    """Returns the result of `load` as a check, and what it loaded or `None`."""
    try:
        return Check(name), load()
    except Exception as error:  # TensorFlow raises many kinds.
        return Check(name, problems=[describe_error(error)]), None


def read_digests(path: pathlib.Path) -> dict[str, dict]:
    """Returns the result of `list_files` that the JSON of a version holds."""
    return {
        name: {key: file[key] for key in ("bytes", "sha256")}
        for name, file in json.loads(path.read_text("utf-8"))["files"].items()
    }


def check_files(folder: pathlib.Path, wanted: dict[str, dict]) -> Check:
    """Compares size and digest of each file with the recorded `list_files`."""
    check, found = check_loading("files", lambda: file_layout.list_files(folder))
    if found is None:
        return check
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            check.problems.append(f"{name}: missing")
        elif name not in wanted:
            check.problems.append(f"{name}: not recorded")
        elif wanted[name] != found[name]:
            one, other = (
                f"{file['bytes']} bytes of SHA-256 {file['sha256'][:16]}..."
                for file in (wanted[name], found[name])
            )
            check.problems.append(f"{name}: wanted {one}, received {other}")
    size = sum(file["bytes"] for file in found.values())
    check.notes.append(f"{len(found)} files of {size:,} bytes, by unsigned digests")
    return check


def check_server_files(export_dir: pathlib.Path) -> Check:
    names = file_layout.SERVER_FILES
    missing = [name for name in names if not (export_dir / name).is_file()]
    problems = [f"{name}: missing" for name in missing]
    return Check("server files", [", ".join(names)], problems)


def check_ops(meta_graph) -> Check:
    """Compares the ops with those that the stock server links."""
    problems = [
        f"{op}: not in TensorFlow, nor an op of its tokenizer"
        for op in sorted(unsupported_ops(meta_graph))
    ]
    return Check("ops", [f"{len(used_ops(meta_graph))} kinds"], problems)


def check_xla(meta_graph) -> Check:
    names = ", ".join(sorted(compiled_functions(meta_graph)))
    problem = f"compiled by XLA, which the stock server refuses: {names}"
    return Check("xla", ["no compiled function"], [problem] if names else [])


def check_warmup(ask: Callable, path: pathlib.Path) -> Check:
    """Runs the warm-up requests, as the server does when it loads a version."""
    check = Check("warm-up")
    count = 0
    try:
        for request in show_progress(read_warmup(path), unit="request"):
            ask(request.model_spec.signature_name, read_tensors(request.inputs))
            count += 1
    except Exception as error:  # The server does not load then.
        check.problems.append(f"request {count + 1}: {describe_error(error)}")
    if not 0 < count <= MAX_RECORDS:
        check.problems.append(
            f"{path.name}: wanted 1 to {MAX_RECORDS} requests, received {count}"
        )
    check.notes.append(f"{count} requests")
    return check


def check_samples(ask: Callable, signatures: dict, folder: pathlib.Path) -> Check:
    """Runs the samples and compares the outputs with the recorded ones."""
    check = Check("samples")
    try:
        samples = read_samples(folder / file_layout.SAMPLES, signatures)
        for sample in show_progress(samples, unit="sample"):
            outputs = ask(sample.signature, sample.inputs)
            check.problems += [
                f"{sample.signature}: {difference}"
                for difference in describe_differences(sample.outputs, outputs)
            ]
            pairs = zip(sample.inputs["text"], outputs["translation"], strict=True)
            check.notes += [
                f"{sample.signature}: {abbreviate(text)} -> {abbreviate(translation)}"
                for text, translation in pairs
            ]
    except Exception as error:  # Parsers raise many kinds for damaged files.
        check.problems.append(describe_error(error))
    return check


def check_litert(folder: pathlib.Path, load: Callable) -> Iterator[Check]:
    """Runs the checks of a version for LiteRT and yields their results.

    `load` returns the `litert_translator.Translator` of a folder.
    """

    def check_translations():
        translator, check = load(folder), Check("samples")
        path = folder / file_layout.LITERT_SAMPLES
        for sample in json.loads(path.read_text("utf-8")):
            of_languages = translator.for_languages(**sample["languages"])
            (found,) = of_languages.translate([sample["source"]])
            text, score = sample["translation"], sample["score"]
            if found.text != text or not is_close(found.score, score):
                check.problems.append(
                    f"wanted {abbreviate(text)}, {score}, "
                    f"received {abbreviate(found.text)}, {found.score:.4f}"
                )
            check.notes.append(
                f"{abbreviate(sample['source'])} -> {abbreviate(found.text)}"
            )
        return check

    name = file_layout.LITERT_CONFIG
    check, files = check_loading(name, lambda: read_digests(folder / name))
    yield check
    if files is not None:
        check = check_files(folder, files)
        yield check
    if check.problems:
        yield Check("samples", left_out=LEFT_OUT)
    else:
        check, done = check_loading("samples", check_translations)
        yield done or check


def report(checks: Iterable[Check]) -> None:
    """Prints checks; exits with code 1 if one found a problem."""
    is_wrong = False
    for check in checks:
        is_wrong |= bool(check.problems)
        status = "WRONG" if check.problems else "-" if check.left_out else "ok"
        for line in check.problems or check.notes or [check.left_out]:
            print(f"{status:6}{check.name:13}{line}".rstrip(), flush=True)
    if is_wrong:
        raise SystemExit(1)


def run(options: CheckOptions) -> None:
    # TensorFlow would have us load the SavedModel another way than the server.
    tf.get_logger().setLevel("ERROR")
    formats = file_layout.SAVED_MODEL, file_layout.LITERT_STEP
    folder = find_version(options.export_dir, *formats, version=options.version)
    if (folder / file_layout.LITERT_STEP).exists():
        report(check_litert(folder, load_translator))
    else:
        report(check_version(folder))


def main(argv: list[str] | None = None) -> None:
    with exit_on_user_error():
        run(parse_command("export.check", __doc__, CheckOptions, argv))


if __name__ == "__main__":
    main()
