"""Tests of `serve.processes`: several processes behind one port."""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import threading
import time

import grpc
import numpy as np
import pytest
import uvicorn

from serve import metrics
from serve.middleware import bind
from serve.processes import Supervisor
from tests.helpers.fake_model_server import serve_grpc
from tests.helpers.fake_servable import ServerError
from tests.helpers.service_client import ServiceClient, in_thread, wait_until

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs Linux")
PAIR = {"source": "en", "target": "es"}


@pytest.fixture
def signal_handlers():
    """Restores the handlers that the supervisor replaces."""
    before = {number: signal.getsignal(number) for number in signal.Signals}
    yield
    for number, handler in before.items():
        if handler is not signal.getsignal(number):
            signal.signal(number, handler)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_processes_are_replaced_and_end(signal_handlers, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv(metrics.SHARED_FOLDER, str(tmp_path))
    ready, found = threading.Event(), {}
    config = uvicorn.Config(
        "tests.helpers.process_id_app:app", workers=2, lifespan="off", log_level="error"
    )
    listener = bind("127.0.0.1", 0)
    service = ServiceClient(listener.getsockname()[1])
    supervisor = Supervisor(config, [listener], ready.set)

    def find_processes(*ended):
        """Returns both processes, when those that end have done so."""
        seen = set()

        def ask_more():
            # A connection to a process that ends is closed.
            with contextlib.suppress(OSError):
                seen.add(int(service.get("/").body))
            return len(seen - {*ended}) == 2

        wait_until(lambda: not any(map(is_running, ended)))
        wait_until(ask_more)
        return seen - {*ended}

    def use():
        assert ready.wait(60)
        found["first"] = find_processes()
        for pid in found["first"]:
            (tmp_path / f"gauge_livesum_{pid}.db").touch()
        killed = min(found["first"])
        os.kill(killed, signal.SIGKILL)
        found["after kill"] = find_processes(killed)
        os.kill(os.getpid(), signal.SIGHUP)
        found["after hangup"] = find_processes(*found["after kill"])
        connection = http.client.HTTPConnection("127.0.0.1", service.port, 60)
        with contextlib.closing(connection):
            connection.request("GET", "/slow")
            slow = connection.getresponse()  # Its head.
            os.kill(os.getpid(), signal.SIGTERM)
            found["slow"] = int(slow.read())

    def use_and_end():
        try:
            use()
        finally:
            supervisor.should_exit.set()

    thread, _ = in_thread(use_and_end)
    with contextlib.closing(listener):
        supervisor.run()  # It needs the main thread, for the signals.
        thread.join()

    first, second, third = (
        found[name] for name in ("first", "after kill", "after hangup")
    )
    assert len(first & second) == 1
    assert not second & third
    assert found["slow"] in third
    assert [p.exitcode for p in supervisor.processes] == [-signal.SIGTERM] * 2
    assert not any(map(is_running, first | second | third))
    # The gauges of processes that have ended do not count any more.
    assert not list(tmp_path.iterdir())
    (line,) = capfd.readouterr().err.splitlines()
    assert line == (
        f"process {min(first)} has ended with status -9; another one starts"
    )


class ReversingServable:
    """Stands in for a `Servable`, and reverses texts when its `gate` is set."""

    version = 1

    def __init__(self):
        self.gate, self.running = threading.Event(), 0
        self.gate.set()
        self._lock = threading.Lock()

    def check_model(self, name, version):
        pass

    def predict(self, signature, inputs, output_filter):
        if signature != "serving_default":
            raise ServerError(grpc.StatusCode.FAILED_PRECONDITION, signature)
        with self._lock:
            self.running += 1
        assert self.gate.wait(60)
        with self._lock:
            self.running -= 1
        texts = inputs["text"]
        return {
            "translation": np.array([text[::-1] for text in texts], object),
            "truncated": np.zeros(len(texts), bool),
        }


@contextlib.contextmanager
def serve_in_two_processes(address, keys, log):
    """Runs the command with standard error in `log`; yields process and client."""
    process = subprocess.Popen(
        [sys.executable, "-m", "serve", "--port=0", "--workers=2"]
        + [f"--pair=en:es={address}", "--in-flight=1", f"--api-keys={keys}"],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    with process:
        try:
            assert process.stdout.readline() == "en to es\n"
            line = process.stdout.readline()
            yield process, ServiceClient(int(line.rpartition(":")[2][:-2]))
        finally:
            process.terminate()


@pytest.mark.slow
def test_two_processes_serve_share_files_reload_keys_and_drain(tmp_path):
    keys, log = tmp_path / "keys", tmp_path / "log"
    keys.write_text("first")
    servable, started = ReversingServable(), []
    with (
        serve_grpc(servable) as address,
        log.open("w") as file,
        serve_in_two_processes(address, keys, file) as (process, service),
    ):

        def translate(key):
            return service.post("/translate", q="ab", api_key=key, **PAIR)

        def statuses(key):
            time.sleep(0.2)
            return {translate(key).status for _ in range(20)}

        def are_both_busy():
            started.append(in_thread(translate, "first"))
            time.sleep(0.2)
            return servable.running == 2

        servable.gate.clear()
        wait_until(are_both_busy)  # Each sends one request at a time.
        servable.gate.set()
        for thread, answers in started:
            thread.join()
            assert answers[0].json() == {"translatedText": "ba"}

        answer = service.post_file(
            "/translate_file", "a.txt", b"ab", api_key="first", **PAIR
        )
        path = answer.json()["translatedFileUrl"].removeprefix(service.url)
        assert {service.get(path).body for _ in range(30)} == {b"ba"}

        keys.write_text("second")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: [*map(statuses, ("first", "second"))] == [{403}, {200}], 120)

        keys.write_text("")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: "aborting the restart" in log.read_text(), 120)
        assert statuses("second") == {200}

        servable.gate.clear()
        thread, answers = in_thread(translate, "second")
        wait_until(lambda: servable.running)
        process.send_signal(signal.SIGTERM)
        time.sleep(1)
        servable.gate.set()
        thread.join()
        # The last process that has the pipe has ended then.
        process.communicate(timeout=60)

    assert answers[0].json() == {"translatedText": "ba"}
    assert process.returncode == 0
    complaints = log.read_text()
    assert "--api-keys must hold keys, one a line" in complaints
    assert "Traceback" not in complaints
