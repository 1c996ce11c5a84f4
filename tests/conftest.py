"""Eight logical CPU devices, and what many tests share."""

import functools
import gc
import os
import re

import pytest

from tests.helpers.allowed_skips import (
    pytest_runtest_setup,  # noqa: F401  A hook.
    pytest_sessionfinish,  # noqa: F401
)
from tests.helpers.error_capture import refusal
from tests.helpers.example_sentences import SENTENCES

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def pytest_configure(config):
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return  # The workers of xdist run the tests.
    # Before anything starts TensorFlow's runtime, which fixes the devices.
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 8
    )


def skip_in_collections():
    """Lets the garbage collector, which Keras calls often, skip what is there."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish():
    skip_in_collections()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keeps a file on one worker, and whatever uses the export on one.

    With pytest 9.2 xdist's own groups do nothing (pytest-xdist#1386): modules'
    fixtures were then made on both workers, and the export, too.
    """
    from xdist.scheduler import LoadScopeScheduling

    @functools.cache
    def group_of(name):
        text = (config.rootpath / name).read_text("utf-8")
        return (
            "export"
            if re.search(r"export_dir|servable|(?:from|import) serve", text)
            else name
        )

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid.partition("::")[0])

    return ByFile(config, log)


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory):
    """The run folder of a model with random weights."""
    import keras

    from keras_transformer import Transformer
    from train.data.corpus import Pairs
    from train.data.vocabulary import learn_vocabulary

    folder = tmp_path_factory.mktemp("run")
    reversed_words = [" ".join(s.split()[::-1]) for s in SENTENCES]
    proto = learn_vocabulary(Pairs(SENTENCES * 3, reversed_words * 3), 330)
    (folder / "tokenizer.model").write_bytes(proto)
    keras.utils.set_random_seed(5)
    sizes = {"num_layers": 2, "hidden_dim": 16, "intermediate_dim": 24, "num_heads": 2}
    sizes |= {"key_dim": 8, "value_dim": 4, "sequence_length": 40}
    model = Transformer.from_preset("base", vocabulary_size=330, **sizes)
    model.build()
    # Logits far enough apart that no rounding decides; bytes, ids 4 to 259, are not
    # chosen: one alone forms no character.
    scales = [0.3 if 4 <= i < 260 else 3 for i in range(330)]
    embeddings = model.embedding.embeddings
    embeddings.assign(embeddings * keras.ops.expand_dims(scales, 1))
    model.save(folder / "model.keras")
    return folder


@pytest.fixture(scope="session")
def export_dir(run_dir, tmp_path_factory):
    """The folder of that model's export, whose version 1 is loaded once."""
    from export.bundle.file_layout import SAVED_MODEL
    from export.bundle.run_loading import load_run
    from export.bundle.write_version import write_version
    from export.model.search import SearchSettings
    from export.model.signature_inputs import INPUTS
    from translate.loading import RUNTIMES

    folder = tmp_path_factory.mktemp("export")
    settings = SearchSettings(3, max_extra_length=8, source_language="en")
    translator = load_run(run_dir, settings, signatures=INPUTS)
    write_version(translator, [run_dir], folder, "reverse")
    load = RUNTIMES[SAVED_MODEL]

    @functools.cache
    def load_once(path):
        loaded = load(path)
        skip_in_collections()
        return loaded

    def load_shared(path):
        return (load_once if path.parent == folder else load)(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RUNTIMES, SAVED_MODEL, load_shared)
        yield folder


@pytest.fixture(scope="session")
def servable(export_dir):
    """That SavedModel in a Session, as TF Serving holds it."""
    from tests.helpers.fake_servable import Servable

    servable = Servable(export_dir)
    skip_in_collections()
    return servable


@pytest.fixture(scope="session")
def translate(export_dir):
    """The default signature of that export, as Python loads it."""
    from tests.helpers.signature_requests import ask
    from translate.loading import load_export

    runtime = load_export(export_dir)
    return lambda texts: runtime.ask("serving_default", ask(texts))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Options that name four small files, one with a line to drop."""
    from tests.helpers.small_runs import write_corpus

    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def translate_file(tmp_path):
    """Function that translates bytes by the command; returns what it writes."""
    from translate import __main__ as command

    def run(content, *options):
        (tmp_path / "in").write_bytes(content)
        files = [f"--{name}put={tmp_path / name}" for name in ("in", "out")]
        command.main([*files, *map(str, options)])
        return (tmp_path / "out").read_bytes()

    return run


@pytest.fixture
def refused(capsys):
    """Function that returns the line in which a command refuses options."""

    def run(command, *options):
        return refusal(capsys, command.main, options)

    return run
