"""Tests of one model of several languages behind several pairs of codes."""

import pytest

from command_line.errors import UserError
from export.bundle.model_loading import load_run
from export.bundle.write_version import write_version
from export.model.search import SearchSettings
from serve.languages import load_pairs, read_pair
from tests.helpers import service_client
from tests.helpers.example_sentences import SENTENCES
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.fake_servable import Servable
from tests.helpers.multilingual_runs import OWN, write_run
from translate.runtime.tf_serving import ClientOptions


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """The folder of an export with target languages as an input."""
    folder = tmp_path_factory.mktemp("several")
    run_dir = write_run(folder / "run", OWN)
    names = "serving_default", "translate_nbest"
    translator = load_run(run_dir, SearchSettings(2), "float32", names)
    write_version(translator, [run_dir], folder / "export", "several")
    return folder / "export"


def load(location, *codes):
    pairs = [read_pair(f"{pair}={location}") for pair in codes]
    return load_pairs(pairs, ClientOptions(model_name="several"))


def test_pairs_share_a_model_and_a_queue(several):
    models = load(several, "en:de", "en:fr", "es:pt")
    expected = {
        pair: [each.text for each in model.translate(SENTENCES)]
        for pair, model in models.items()
    }

    assert len({model.original for model in models.values()}) == 1
    assert len({*map(tuple, expected.values())}) == 3
    with service_client.serve(models) as service:
        asked = [
            service_client.in_thread(
                service.post, "/translate", q=SENTENCES, source=source, target=target
            )
            for source, target in models
        ]
        for (thread, answers), texts in zip(asked, expected.values(), strict=True):
            thread.join()
            assert answers[0].json()["translatedText"] == texts
        assert service.get("/readyz").status == 200


@pytest.mark.parametrize("kind", ["export", "server"])
def test_a_pair_that_the_model_lacks_is_refused_at_the_start(several, kind):
    servable = Servable(several, "several")
    message = "--pair en:fra=.*: .*one of the model: fr"
    if kind == "export":
        with pytest.raises(UserError, match=message):
            load(several, "en:de", "en:fra")
        return
    with serve_grpc(servable) as address:
        found = load(address, "en:de", "en:pt")
        expected = load(several, "en:de", "en:pt")
        for pair, model in found.items():
            assert model.translate(SENTENCES) == expected[pair].translate(SENTENCES)
        with pytest.raises(UserError, match=message):
            load(address, "en:de", "en:fra")
