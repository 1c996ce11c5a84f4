"""What Prometheus is told."""

from collections.abc import Callable

import prometheus_client

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32)


class Metrics:
    """The counters of one service.

    Attributes:
        requests, seconds: By path, and status.
        rows, waiting: By model: the rows of its batches, and what waits.
        sentences, characters, truncated: By pair: what was translated.
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
            "Rows that a model answered together",
            "model",
            buckets=ROWS,
        )
        self.waiting = make(
            prometheus_client.Gauge,
            "waiting",
            "Sentences that wait for a model",
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
        """Returns what notes a request; other paths are one, `other`."""

        def observe(path, status, seconds):
            path = path if path in paths else "other"
            self.requests.labels(path, status).inc()
            self.seconds.labels(path).observe(seconds)

        return observe

    def render(self) -> bytes:
        """Returns all, as Prometheus reads it."""
        return prometheus_client.generate_latest(self._registry)
