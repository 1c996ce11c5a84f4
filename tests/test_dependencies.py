"""Imports go one way: between the packages, and between rooms of a package."""

import ast
import pathlib
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parent.parent

# The packages of this project that each package may import.
PACKAGES = {
    "keras_transformer": "",
    "command_line": "keras_transformer",
    "demo_corpus": "",
    "train": "keras_transformer command_line demo_corpus",
    "export": "keras_transformer command_line",
    "convert": "keras_transformer command_line train export",
    "paper": "keras_transformer command_line train export",
    "benchmarks": "keras_transformer command_line demo_corpus train export "
    "paper",
    "tests": "keras_transformer command_line demo_corpus train export convert "
    "paper "
    "benchmarks examples docs",
}
# And the layers of other projects: they run on any backend of Keras.
LAYERS = {"keras", "numpy", *sys.stdlib_module_names}
# Rooms that have TensorFlow, too; nothing imports them with the layers.
TENSORFLOW = (
    "text",
    "search.graph_search",
    "search.graph_candidates",
    "search.graph_transformer",
    "search.graph_cache",
    "search.graph_layers",
)

# The rooms of a package: a line imports from its own room, or further right.
ROOMS = {
    "keras_transformer": "__init__ transformer presets encoder decoder "
    "base_layer "
    "residual feed_forward restricted_attention attention ssru linear "
    "search cache "
    "embedding schedules losses metrics text parsing masks argument_checks",
    "train": "__init__ __main__ average resolve_options options fit "
    "monitoring run loop data",
    "export": "__init__ __main__ bulk serve evaluate translate text_documents "
    "loading explain check line_batching sampling client server_address "
    "report scoring "
    "markup ctranslate2 bundle model",
    "convert": "__init__ __main__ to_hugging_face from_marian "
    "from_hugging_face hugging_face_config run_folder_writer "
    "weight_mapping vocabularies tensor_files",
}


def module_of(path: pathlib.Path, root: pathlib.Path) -> str:
    """Returns the name by which a file is imported."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str, root: pathlib.Path) -> bool:
    path = root.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imports_of(
    path: pathlib.Path, root: pathlib.Path
) -> Iterator[tuple[int, str, bool]]:
    """Yields line and module of each import, and whether it waits for a call.

    Of `from a import b`, `a.b` where that is a module.
    """
    tree = ast.parse(path.read_text("utf-8"))
    late = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    package = path.relative_to(root).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1]
            module = ".".join(
                [*(above if node.level else ()), *filter(None, [node.module])]
            )
            inner = [f"{module}.{alias.name}" for alias in node.names]
            names = [
                name if is_module(name, root) else module for name in inner
            ]
        else:
            continue
        for name in dict.fromkeys(names):
            yield node.lineno, name, node in late


def room_of(module: str, rooms: list[str]) -> str | None:
    """Returns the room of a module; that of the package is `__init__`."""
    name = module.partition(".")[2] or "__init__"
    fitting = [r for r in rooms if f"{name}.".startswith(f"{r}.")]
    return max(fitting, key=len, default=None)


def find_faults(package: str, root: pathlib.Path = ROOT) -> Iterator[str]:
    """Yields `file:line: what it imports` for all that goes the wrong way."""
    rooms = ROOMS.get(package, "").split()
    allowed = {package, *PACKAGES[package].split()}
    for path in sorted((root / package).rglob("*.py")):
        module = module_of(path, root)
        room = room_of(module, rooms)
        if rooms and room is None:
            yield f"{path.relative_to(root)}:1: {module} is in no room"
            continue
        for line, name, is_late in imports_of(path, root):
            top = name.partition(".")[0]
            fault = f"{path.relative_to(root)}:{line}: {module} imports {name}"
            if top in PACKAGES and top not in allowed:
                yield fault
            elif package == "keras_transformer" and breaks_layers(
                module, name, is_late
            ):
                yield f"{fault}: the layers run on any backend"
            elif package == "tests" and name.rpartition(".")[2].startswith(
                ("test_", "conftest")
            ):
                yield f"{fault}: what tests share is in tests/helpers"
            elif rooms and top == package and room != "__init__":
                target = room_of(name, rooms)
                if target is None or rooms.index(target) < rooms.index(room):
                    yield f"{fault}: from {room} up to {target}"


def breaks_layers(module: str, name: str, is_late: bool) -> bool:
    """Returns whether a line of `keras_transformer` needs TensorFlow."""
    has_tensorflow = [
        room_of(each, list(TENSORFLOW)) is not None for each in (module, name)
    ]
    if has_tensorflow[0]:
        return name.partition(".")[0] not in {
            *LAYERS,
            "keras_transformer",
            "tensorflow",
            "tensorflow_text",
        }
    if name.partition(".")[0] == "keras_transformer":
        return has_tensorflow[1] and not is_late
    return name.partition(".")[0] not in LAYERS


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package):
    faults = list(find_faults(package))

    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("path", "line", "is_right"),
    [
        ("train/fit.py", "import export.translate", False),
        ("train/fit.py", "from tests.helpers import arrays", False),
        ("train/fit.py", "from train.monitoring import progress", True),
        ("train/monitoring/progress.py", "from train import fit", False),
        (
            "train/monitoring/progress.py",
            "from ..fit import UpdateOptions",
            False,
        ),
        (
            "train/monitoring/progress.py",
            "def f():\n    import train.fit",
            False,
        ),
        ("demo_corpus/word_tables.py", "import train.data.corpus", False),
        ("train/novelty.py", "", False),
        ("keras_transformer/cache.py", "import tensorflow as tf", False),
        ("keras_transformer/cache.py", "import json, numpy, keras", True),
        (
            "keras_transformer/transformer.py",
            "def f():\n    from keras_transformer.text import tokenizer",
            True,
        ),
        ("keras_transformer/text/tokenizer.py", "import tensorflow", True),
        ("keras_transformer/text/tokenizer.py", "import sacrebleu", False),
        ("tests/train/test_fit.py", "from tests import conftest", False),
        ("tests/test_a.py", "from tests.helpers.arrays import f", True),
    ],
)
def test_a_planted_import_is_found(tmp_path, path, line, is_right):
    for module in (
        *(
            "train/fit.py",
            "train/monitoring/progress.py",
            "train/data/corpus.py",
        ),
        *("export/translate.py", "keras_transformer/text/tokenizer.py"),
        *("tests/helpers/arrays.py", "tests/conftest.py"),
    ):
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).touch()
    target = tmp_path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(line)
    package = path.partition("/")[0]

    faults = list(find_faults(package, tmp_path))

    if is_right:
        assert not faults
    else:
        (fault,) = faults
        number = line.count("\n") + 1
        assert fault.startswith(f"{path}:{number}: ")
