"""What the server counts, for Prometheus."""

import prometheus_client as prometheus

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
UNKNOWN = ""  # the model of a request for one that is not served


class Metrics:
    """Counts of one server.

    Args:
        models: dict of name to `Model`.
        waiting: function that gives the number of texts that wait.
    """

    content_type = prometheus.CONTENT_TYPE_LATEST

    def __init__(self, models, waiting):
        self._models = models
        self._registry = own = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "recbert_requests",
            "Requests to predict, by their HTTP status.",
            ["model", "status"],
            registry=own,
        )
        self._seconds = prometheus.Histogram(
            "recbert_request_seconds",
            "Seconds from the header of a request to its answer.",
            ["model"],
            buckets=_SECONDS,
            registry=own,
        )
        self._texts = prometheus.Counter(
            "recbert_texts", "Examples that were answered.", ["model"], registry=own
        )
        self._calls = prometheus.Histogram(
            "recbert_batch_texts",
            "Examples in a call of a model.",
            ["model"],
            buckets=_TEXTS,
            registry=own,
        )
        self._version = prometheus.Gauge(
            "recbert_model_version", "The version served.", ["model"], registry=own
        )
        queue = prometheus.Gauge(
            "recbert_waiting_texts", "Examples that wait for a call.", registry=own
        )
        queue.set_function(waiting)

    def request(self, model, status, seconds, texts):
        """Counts a request and its answer."""
        model = model if model in self._models else UNKNOWN
        self._requests.labels(model, status).inc()
        self._seconds.labels(model).observe(seconds)
        self._texts.labels(model).inc(texts)

    def call(self, model, texts):
        """Counts a call of a model."""
        self._calls.labels(model).observe(texts)

    def page(self):
        """All counts in the text format, bytes."""
        for name, model in self._models.items():
            self._version.labels(name).set(model.version.number)
        return prometheus.generate_latest(self._registry)
