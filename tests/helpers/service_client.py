"""Starts a translation service in this process, and sends requests to it."""

import contextlib
import json
import re
import threading
import time
import urllib.parse

import urllib3
import uvicorn

from serve.__main__ import make_config
from serve.app import make_app
from serve.middleware import bind
from serve.options import HttpOptions, LimitOptions
from tests.helpers.fake_models import FunctionRuntime, make_outputs


class ReversingModel:
    """A model that reverses texts, and answers when its `gate` is set."""

    def __init__(self):
        self.batches, self.gate = [], threading.Event()
        self.gate.set()

    def __call__(self, texts):
        self.batches.append(texts)
        assert self.gate.wait(60)
        return make_outputs([text[::-1] for text in texts])


class ServiceClient:
    """Sends requests, each with some headers."""

    def __init__(self, port, **headers):
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        self._headers = headers

    def get(self, path, **headers):
        return self._ask("GET", path, None, headers)

    def measured(self, name):
        """Returns the value of a Prometheus metric, or 0."""
        metrics = self.get("/metrics").data.decode()
        found = re.search(rf"^{re.escape(name)} (.*)", metrics, re.M)
        return float(found[1]) if found else 0

    def post(self, path, **fields):
        """Posts fields as JSON."""
        return self.post_body(path, json.dumps(fields), "application/json")

    def post_form(self, path, **fields):
        return self.post_body(
            path, urllib.parse.urlencode(fields), "application/x-www-form-urlencoded"
        )

    def post_file(self, path, name, content, **fields):
        fields["file"] = (name, content)
        body, kind = urllib3.encode_multipart_formdata(fields)
        return self.post_body(path, body, kind)

    def post_body(self, path, body, kind):
        return self._ask("POST", path, body, {"Content-Type": kind})

    def _ask(self, method, path, body, headers):
        how = {"headers": {**self._headers, **headers}, "retries": False}
        with urllib3.HTTPConnectionPool("127.0.0.1", self.port, timeout=120) as pool:
            return pool.urlopen(method, path, body, redirect=False, **how)


@contextlib.contextmanager
def serve(models, http=None, **limits):
    """Serves on a free port; yields a `ServiceClient`."""
    http = http or HttpOptions(port=0)
    app = make_app(models, http, LimitOptions(**limits))
    listener = bind("127.0.0.1", 0)
    server = uvicorn.Server(make_config(app))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield ServiceClient(listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()


def serve_function(translate, **limits):
    """Serves what translates English to Spanish."""
    return serve({("en", "es"): FunctionRuntime(translate)}, **limits)


def wait_until(holds, seconds=120):
    """Waits for what another thread does."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.005)


def in_thread(function, *args, **kwargs):
    """Starts a thread; returns it and the list that its result comes into."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*args, **kwargs)))
    thread.start()
    return thread, results
