"""Prometheus metrics of the service."""

from collections.abc import Callable

import prometheus_client

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32)


class Metrics:
    """The metrics of one service.

    Attributes:
        requests, seconds: Number and duration of requests, by path and status.
        rows, waiting: Batch sizes and queue lengths, by model.
        sentences, characters, truncated: Counts of translated text, by pair.
    """

    def __init__(self):
        self._registry = registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=registry)

        def make(cls, name, help, *labels, **kwargs):
            return cls(
                f"translate_{name}", help, labels, registry=registry, **kwargs
            )

        counter, histogram = (
            prometheus_client.Counter,
            prometheus_client.Histogram,
        )
        self.requests = make(
            counter, "requests", "Requests answered", "path", "status"
        )
        self.seconds = make(
            histogram,
            "request_seconds",
            "Seconds from a request's head to its end",
            "path",
            buckets=SECONDS,
        )
        self.rows = make(
            histogram,
            "batch_rows",
            "Sentences in a batch of a model",
            "model",
            buckets=ROWS,
        )
        self.queue_length = make(
            prometheus_client.Gauge,
            "waiting",
            "Sentences in the queue of a model",
            "model",
        )
        self.sentences, self.characters, self.truncated = (
            make(counter, name, help, "pair")
            for name, help in (
                ("sentences", "Sentences translated"),
                ("characters", "Characters of them"),
                ("truncated", "Sentences cut at the model's limit"),
            )
        )

    def observe_request(self, paths: set[str]) -> Callable:
        """Returns a function that records a request (`other`: unknown path)."""

        def observe(path, status, seconds):
            path = path if path in paths else "other"
            self.requests.labels(path, status).inc()
            self.seconds.labels(path).observe(seconds)

        return observe

    def render(self) -> bytes:
        """Returns the metrics in Prometheus's text format."""
        return prometheus_client.generate_latest(self._registry)
