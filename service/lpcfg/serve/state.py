"""The state of a running service: one object, created at start, reached through the application."""

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import structlog
from fastapi import Depends
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import DeadlineError
from lpcfg.serve.http.context import Context, Proxies, connection_of, context_of
from lpcfg.serve.http.keys import Keys
from lpcfg.serve.http.problems import Refused
from lpcfg.serve.http.traces import Traces
from lpcfg.serve.jobs import Jobs
from lpcfg.serve.memory import give_back
from lpcfg.serve.metrics import Metrics
from lpcfg.serve.scheduling.admission import Admission, Priority, cost_of_body, priority_of
from lpcfg.serve.scheduling.cache import Cache
from lpcfg.serve.scheduling.work import R, Task, Workers
from lpcfg.serve.served import Models, starting
from lpcfg.settings import Settings
from lpcfg.words.similarity import Similarity, comparison

_log = structlog.get_logger("lpcfg.web")
BATCHES = frozenset({"/v1/batch", "/v1/dependencies/batch"})
"""The paths whose bodies are lines, any number of them, answered while they come."""
JOBS = "/v1/jobs"
_DIGITS = 18  # of a Content-Length: an exabyte
_LOOK = 5.0  # seconds between looks whether there is memory to give back


@dataclass(eq=False)
class Service:
    """The settings, models, workers and counters of a service."""

    settings: Settings
    models: Models
    admission: Admission
    cache: Cache[Any]
    metrics: Metrics
    keys: Keys | None
    admins: Keys | None
    proxies: Proxies
    jobs: Jobs | None = None
    traces: Traces | None = None
    similarity: Similarity | None = None
    """The measure of sentences' similarity, once it is loaded, if there is one."""
    reader: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="read")
    )
    """Reads large bodies, one at a time: the values of a megabyte take 100 MB."""
    guarded: frozenset[str] = frozenset()
    """The paths whose requests are admitted only while there is room."""
    workers: Workers | None = None
    """Set while the event loop runs."""
    failure: BaseException | None = None
    """The reason why the models could not be loaded, if so."""
    answered: int = 0
    """Requests answered, those of probes left out."""
    ends: float = math.inf
    """The time (time.monotonic) by which the process will have ended."""
    on_failure: Callable[[], None] = field(default=lambda: None)
    on_ready: Callable[[], None] = field(default=lambda: None)

    @classmethod
    def of(cls, settings: Settings) -> "Service":
        """Build the state without running workers.

        Raise if a model or a file of keys is missing.
        """
        admission = Admission(
            settings.threads, settings.queue, settings.queue_seconds, settings.batches
        )
        cache: Cache[Any] = Cache(settings.cache_bytes)
        keys, admins = settings.api_keys_file, settings.admin_keys_file
        service = cls(
            settings,
            Models(
                (settings.model, *(settings.models or ())),
                settings.model_store,
                settings.dependencies,
                settings.tagger,
            ),
            admission,
            cache,
            Metrics(admission, cache),
            None if keys is None else Keys(keys),
            None if admins is None else Keys(admins),
            Proxies(settings.proxies or ()),
            Jobs.of(settings),
            Traces.otlp() if settings.traces == "otlp" else None,
        )
        service.metrics.ready.set_function(lambda: service.ready)
        return service

    async def keep_small(self) -> None:
        """Give free memory back to the system whenever requests were answered and none is left."""
        last = self.answered
        while True:
            await asyncio.sleep(_LOOK)
            if self.answered != last and not self.admission.requests:
                last = self.answered
                await asyncio.to_thread(give_back)

    @property
    def draining(self) -> bool:
        """True once the process is about to end: connections are then closed after their answer."""
        return self.ends < math.inf

    def drain(self, seconds: float) -> None:
        """Begin to end: connections wait for what they have asked for, so many seconds longer."""
        self.ends = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds until the process ends: infinitely many, unless it drains."""
        return self.ends - time.monotonic()

    @property
    def ready(self) -> bool:
        """True if every model is verified and warm, and the process is not about to end."""
        return self.models.ready and not self.draining

    async def load(self, *, fall_back: bool = True) -> None:
        """Make the models ready, older versions where newest ones cannot be used.

        `loaded` sees how it ends.
        """
        if self.settings.similarity_file is not None:
            measure = partial(_measure, self.settings.similarity_file)
            self.similarity = await self.models.run(measure)
        await self.models.load(fall_back=fall_back)
        self.on_ready()

    def loaded(self, loading: "asyncio.Task[None]") -> None:
        """End the service if `load` failed, whatever the reason: it would never be ready."""
        if not loading.cancelled() and (failure := loading.exception()) is not None:
            _log.error("not ready", reason=str(failure) or type(failure).__name__)
            self.failure = failure
            self.on_failure()

    def context(self, scope: Scope) -> Context:
        """Begin the context of a request."""
        headers, peer = scope["headers"], scope.get("client") or ("", 0)
        return Context.of(scope["method"], headers, self.proxies.address(peer[0], headers))

    def enter(self, scope: Scope, context: Context) -> None:
        """Find the key of a request. Raise Refused if it has none of these, or there is no room.

        Whether there is room is decided from the head: what the body holds is estimated from its
        length, and looked at again once it is known.
        """
        headers = Headers(scope=scope)
        if self.keys is not None:
            context.owner = self.keys.owner(headers)
            context.key = context.client = context.owner.name
        if not self.models.ready:
            raise starting()
        if scope["path"] in BATCHES:
            self.admission.check_batch(context.client)
        elif scope["path"] == JOBS:
            if self.jobs is not None:
                self.jobs.check(context.client)
        else:
            length = headers.get("content-length", "")
            known = length.isdecimal() and len(length) < _DIGITS
            estimate = cost_of_body(int(length)) if known else math.inf
            self.admission.check(priority_of(estimate), context.client)
        context.has_entered = True

    def stop(self) -> Stop:
        """Return the deadline for a request that begins now."""
        return Stop.after(self.settings.timeout_seconds)

    async def compute(
        self,
        request: Request,
        prepare: Callable[[], Sequence[Task[R]]],
        estimate: float,
        stop: Stop,
    ) -> list[R]:
        """Compute the answers of a request's tasks, in order, until the client disconnects.

        The request's body must have been read. At the deadline, raise DeadlineError at once; the
        work itself ends at its next step.
        """
        context = context_of(request.scope)
        priority = priority_of(estimate)
        self.admission.check(priority, context.client)
        connection = connection_of(request.scope)
        if connection is not None:
            # It tells: a task that waits would take the interpreter's lock from those that parse.
            connection.when_gone(stop.cancel)
        try:
            return await self.answers(prepare, priority, context, estimate, stop)
        finally:
            if connection is not None:
                connection.when_gone(None)

    async def answers(
        self,
        prepare: Callable[[], Sequence[Task[R]]],
        priority: Priority,
        context: Context,
        estimate: float,
        stop: Stop,
    ) -> list[R]:
        """Compute the answers of tasks, in order, even if no client is waiting."""
        if self.workers is None:
            raise Refused("starting", "expected running workers, got none: try again shortly")
        ticket = self.admission.enter(priority, context.client, estimate)
        try:
            async with asyncio.timeout(self.settings.timeout_seconds):
                # The last step: the thread that it wakes waits for the interpreter's lock.
                work = self.workers.submit(prepare, ticket, stop, context.phases)
                try:
                    return await work.done
                finally:
                    context.waited += work.waited
                    context.worked += work.worked
        except (TimeoutError, DeadlineError):  # the event loop or the worker saw the deadline first
            raise DeadlineError(
                f"expected to be done within {self.settings.timeout_seconds:g} seconds, got no "
                "answer by then: send less at once"
            ) from None
        finally:
            stop.cancel()

    def charge(self, context: Context, tokens: int) -> None:
        """Take so many tokens, which are an estimate, from the quota of a request's key."""
        if context.owner is not None:
            context.owner.spend(tokens)
            context.charged += tokens

    def done(
        self,
        context: Context,
        endpoint: str,
        model: str | None,
        lengths: Sequence[int],
        charged: int | None = None,
    ) -> None:
        """Count sentences of these lengths that a model has answered, and correct the quota.

        `model` is its hash. `charged` is what the key was charged with for them; by default, for
        the whole request.
        """
        self.metrics.count(endpoint, lengths, context.key)
        context.model = model
        context.sentences += len(lengths)
        context.tokens += sum(lengths)
        if context.owner is not None:
            context.owner.correct(sum(lengths) - (context.charged if charged is None else charged))


def _measure(file: Path) -> Similarity:
    """Load a measure and use it once, so that no request waits for what it needs."""
    measure = Similarity.load(file)
    comparison(measure, ("Yes.", "No."))
    return measure


async def until_disconnect(request: Request) -> None:
    """Wait until the client has disconnected. The request's body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def service_of(request: Request) -> Service:
    """Return the service that a request came to."""
    service: Service = request.app.state.service
    return service


async def _dependency(request: Request) -> Service:
    """Return the service, for endpoints: FastAPI calls a function that is none of `async` on a
    thread, which takes as long as all else that it does with a request.
    """
    return service_of(request)


TheService = Annotated[Service, Depends(_dependency)]
