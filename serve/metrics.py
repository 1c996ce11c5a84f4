"""Prometheus metrics of the service."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import prometheus_client
from prometheus_client import Counter, Gauge, Histogram

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32)
GONE = 499  # nginx's status for a client that disconnected.


class ModelMetrics(NamedTuple):
    """The metrics of one model."""

    batch_sizes: Histogram
    queue_length: Gauge
    errors: Counter  # Failed batches.


class Metrics:
    """The metrics of one service, by path and status, by model or by pair."""

    def __init__(self):
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)

        def add(kind, name, help, *labels, **kwargs):
            name, kwargs["registry"] = f"translate_{name}", self._registry
            return kind(name, help, labels, **kwargs)

        labels = "path", "status"
        self._requests = add(Counter, "requests", "Requests answered", *labels)
        help = "Seconds of a request"
        self._seconds = add(Histogram, "request_seconds", help, "path", buckets=SECONDS)
        rows = {"buckets": ROWS}
        self._of_model = (
            add(Histogram, "batch_rows", "Sentences in a batch", "model", **rows),
            add(Gauge, "waiting", "Queue length", "model"),
            add(Counter, "model_errors", "Batches that failed", "model"),
        )
        self._of_pair = (
            add(Counter, "sentences", "Sentences translated", "pair"),
            add(Counter, "characters", "Characters of them", "pair"),
            add(Counter, "truncated", "Sentences cut at the model's limit", "pair"),
        )

    def of_model(self, name: str) -> ModelMetrics:
        return ModelMetrics(*(metric.labels(name) for metric in self._of_model))

    def observe_request(self, path: str, status: int, seconds: float) -> None:
        self._requests.labels(path, status).inc()
        self._seconds.labels(path).observe(seconds)

    def count_sentences(self, pair: str, sentences: list[str], translations) -> None:
        """Counts translated text; the results are `Translation`."""
        truncated = sum(each.truncated for each in translations)
        amounts = len(sentences), sum(map(len, sentences)), truncated
        for metric, amount in zip(self._of_pair, amounts, strict=True):
            metric.labels(pair).inc(amount)

    def render(self) -> bytes:
        """Returns the metrics in Prometheus's text format."""
        return prometheus_client.generate_latest(self._registry)


class RequestObserver:
    """ASGI middleware that reports the end of each request.

    `observe` receives the path of the route (`other`: unknown path), the status
    (`GONE` if the client is) and the seconds.
    """

    def __init__(self, app: Callable, observe: Callable):
        self._app, self._observe = app, observe

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        clock = asyncio.get_running_loop().time
        started, status = clock(), GONE

        async def noting_send(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting_send)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._observe(route, status, clock() - started)
