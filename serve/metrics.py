"""Prometheus metrics of the service."""

import os
from typing import NamedTuple

import prometheus_client
from prometheus_client import multiprocess

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ROWS = (1, 2, 4, 8, 16, 32)
# The folder in which processes share their metrics; prometheus_client reads
# this variable when it is imported.
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


class ModelMetrics(NamedTuple):
    """The metrics of one model.

    Attributes:
        batch_sizes: Histogram.
        queue_length: Gauge.
        errors: Counter of failed batches.
    """

    batch_sizes: prometheus_client.Histogram
    queue_length: prometheus_client.Gauge
    errors: prometheus_client.Counter


class Metrics:
    """The metrics of one service.

    Attributes:
        requests, seconds: Number and duration of requests, by path and status.
        rows, queue_length, errors: Batch sizes, queue lengths and failed
            batches, by model.
        sentences, characters, truncated: Counts of translated text, by pair.
    """

    def __init__(self):
        self._registry = registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=registry)

        def make(cls, name, help, *labels, **kwargs):
            return cls(f"translate_{name}", help, labels, registry=registry, **kwargs)

        counter, histogram = (prometheus_client.Counter, prometheus_client.Histogram)
        self.requests = make(counter, "requests", "Requests answered", "path", "status")
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
            multiprocess_mode="livesum",
        )
        self.errors = make(
            counter, "model_errors", "Batches of a model that failed", "model"
        )
        self.sentences, self.characters, self.truncated = (
            make(counter, name, help, "pair")
            for name, help in (
                ("sentences", "Sentences translated"),
                ("characters", "Characters of them"),
                ("truncated", "Sentences cut at the model's limit"),
            )
        )

    def of_model(self, name: str) -> ModelMetrics:
        """Returns the metrics of a model."""
        return ModelMetrics(
            self.rows.labels(name),
            self.queue_length.labels(name),
            self.errors.labels(name),
        )

    def observe_request(self, path: str, status: int, seconds: float) -> None:
        """Records a request."""
        self.requests.labels(path, status).inc()
        self.seconds.labels(path).observe(seconds)

    def render(self) -> bytes:
        """Returns the metrics in Prometheus's text format.

        These are the sums over all processes, if there are several.
        """
        registry = self._registry
        if SHARED_FOLDER in os.environ:
            registry = prometheus_client.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)
        return prometheus_client.generate_latest(registry)
