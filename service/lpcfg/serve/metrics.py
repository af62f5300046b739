"""The metrics for Prometheus: one registry per process, and no globals."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from lpcfg.serve.scheduling.admission import Admission, Priority
from lpcfg.serve.scheduling.cache import Cache
from lpcfg.serve.served import Models

_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class _Counted(Collector):
    """A counter that is read when Prometheus asks."""

    def __init__(self, name: str, meaning: str, value: Callable[[], int]) -> None:
        self._told = name, meaning
        self._value = value

    def collect(self) -> Iterable[CounterMetricFamily]:
        """Return the present value."""
        yield CounterMetricFamily(*self._told, value=self._value())


def _load(admission: Admission, priority: Priority, at: int) -> float:
    return admission.load(priority)[at]


class Metrics:
    """Counters written by requests, and gauges that are read when Prometheus asks."""

    def __init__(self, admission: Admission, cache: Cache[Any]) -> None:
        self._admission = admission
        self._cache = cache
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.requests = Counter(
            "lpcfg_requests", "Requests answered", ["endpoint", "status"], registry=self.registry
        )
        self.latency = Histogram(
            "lpcfg_request_seconds",
            "Seconds from the head of a request to the end of its answer",
            ["endpoint"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.sentences = Counter(
            "lpcfg_sentences", "Sentences answered", ["endpoint"], registry=self.registry
        )
        self.tokens = Counter(
            "lpcfg_tokens", "Tokens in sentences answered", ["endpoint"], registry=self.registry
        )
        self.of_keys = {
            what: Counter(
                f"lpcfg_key_{what}", f"{what.title()} answered", ["key"], registry=self.registry
            )
            for what in ("sentences", "tokens")
        }
        self._model = Gauge(
            "lpcfg_model_info",
            "The models that are served",
            ["name", "version", "hash"],
            registry=self.registry,
        )
        self._refused = Gauge(
            "lpcfg_model_refused",
            "Versions that are wanted and could not be loaded, while an older one is served",
            ["name", "version"],
            registry=self.registry,
        )
        self.ready = self._gauge("lpcfg_ready", "1 if every model is verified and warm, else 0")
        self._gauges()

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(name, meaning, registry=self.registry)

    def _gauges(self) -> None:
        admission, cache = self._admission, self._cache
        for name, meaning, value in (
            ("queue_requests", "Requests that wait or are in progress", lambda: admission.requests),
            ("queue_seconds", "Estimated seconds of their work", lambda: admission.waiting_seconds),
            ("batches", "Batches in progress", lambda: admission.batches),
            ("cost_scale", "Seconds per second of estimated cost", lambda: admission.scale),
            ("cache_bytes", "Bytes of cached answers", lambda: cache.bytes),
        ):
            self._gauge(f"lpcfg_{name}", meaning).set_function(value)
        for name, meaning, value in (
            ("refused", "Requests refused because of overload", lambda: admission.refused),
            ("cache_hits", "Sentences answered from the cache", lambda: cache.hits),
            ("cache_misses", "Sentences not found in the cache", lambda: cache.misses),
        ):
            self.registry.register(_Counted(f"lpcfg_{name}", meaning, value))
        # the names of these metrics are older than the word priority, and stay
        for at, (name, meaning) in enumerate(
            (
                ("requests", "Requests of a priority that wait or are in progress"),
                ("seconds", "Estimated seconds of their work"),
            )
        ):
            gauge = Gauge(f"lpcfg_lane_{name}", meaning, ["lane"], registry=self.registry)
            for one in Priority:
                gauge.labels(one.value).set_function(partial(_load, admission, one, at))

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count one request that was answered with this status."""
        self.requests.labels(endpoint, str(status)).inc()
        self.latency.labels(endpoint).observe(seconds)

    def count(self, endpoint: str, lengths: Sequence[int], key: str | None) -> None:
        """Count sentences that were answered, given how many tokens each has, and for which key."""
        self.sentences.labels(endpoint).inc(len(lengths))
        self.tokens.labels(endpoint).inc(sum(lengths))
        if key is not None:
            self.of_keys["sentences"].labels(key).inc(len(lengths))
            self.of_keys["tokens"].labels(key).inc(sum(lengths))

    def text(self, models: Models) -> bytes:
        """Write all metrics in Prometheus's text format."""
        self._model.clear()
        for one in models.references:
            self._model.labels(one.name, str(one.version), one.hash).set(1)
        self._refused.clear()
        for name, version in models.refused:
            self._refused.labels(name, str(version)).set(1)
        return generate_latest(self.registry)
