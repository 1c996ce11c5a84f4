"""Tests of the reload on SIGHUP in `serve.app`."""

import asyncio
import os
import signal

import pytest
import uvicorn

from serve import app
from serve.__main__ import make_config
from serve.middleware import bind
from serve.options import HttpOptions, LimitOptions
from tests.helpers import service_client
from tests.helpers.fake_models import FunctionRuntime, make_outputs
from tests.helpers.service_client import ReversingModel, ServiceClient

FIELDS = {"q": "ab", "source": "en", "target": "es"}
OLD, NEW = {"api_key": "old"}, {"api_key": "new"}

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs Linux")


def test_sighup_replaces_keys_and_models(tmp_path, monkeypatch):
    keys = tmp_path / "keys"
    keys.write_text("old")
    first = ReversingModel()
    first.gate.clear()
    answers, lines = [], []
    monkeypatch.setattr(
        app, "print", lambda line, **_: lines.append(line), raising=False
    )

    def load_models():
        if len(answers) == 1:
            raise OSError("damaged")
        return {("en", "es"): FunctionRuntime(lambda texts: make_outputs(texts))}

    async def run(server, listener):
        service = ServiceClient(listener.getsockname()[1])
        serving = asyncio.create_task(server.serve([listener]))

        async def ask(**key):
            answer = await asyncio.to_thread(
                service.post, "/translate", **FIELDS, **key
            )
            answers.append((answer.status, *answer.json().values()))

        async def hang_up():
            os.kill(os.getpid(), signal.SIGHUP)
            async with asyncio.timeout(30):
                while not lines:
                    await asyncio.sleep(0.01)
            return lines.pop()

        while not server.started:
            await asyncio.sleep(0.01)
        begun = asyncio.create_task(ask(**OLD))
        await asyncio.to_thread(service_client.wait_until, lambda: first.batches)
        keys.write_text("new")
        assert await hang_up() == "reloaded"
        first.gate.set()
        await begun
        assert await hang_up() == "not reloaded: damaged"
        await ask(**NEW)
        keys.write_text("")
        assert "not reloaded: --api-keys must hold" in await hang_up()
        await ask(**NEW)
        await ask(**OLD)
        server.should_exit = True
        await serving

    http = HttpOptions(port=0, api_keys=keys)
    made = app.make_app(
        {("en", "es"): FunctionRuntime(first)}, http, LimitOptions(), load_models
    )
    server = uvicorn.Server(make_config(made))
    asyncio.run(run(server, bind("127.0.0.1", 0)))

    # A request that had begun is answered by the model that it began with.
    answered = [(200, "ba"), (200, "ab"), (200, "ab")]
    assert answers == [*answered, (403, "Invalid API key")]
