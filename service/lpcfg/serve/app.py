"""The application: puts models and workers behind the endpoints, and observes every request.

http/observe.py           ids, traces, metrics, logs, protective headers
http/requests.py          past the router, for what computes: key, room, body, limits
├── routes/kinds.py       an endpoint for each kind: inputs.py → scheduling/work.py → tasks.py
├── routes/batch.py       the same for each line of a batch
├── routes/jobs.py        lines to keep; runner.py answers them, as batch.py does
├── routes/inference.py   the same as tensors, for clients of the Open Inference Protocol
├── routes/constituency.py    marginals and probabilities of trees
├── routes/similarity.py  pairs of sentences
├── routes/status.py      models, health, metrics, reloading
├── routes/reference.py   /docs
└── routes/files.py       the web page
http/encoder.py           writes every answer
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp
from threadpoolctl import threadpool_limits

from lpcfg.base.errors import SettingsError
from lpcfg.serve.http import problems
from lpcfg.serve.http.observe import Observed
from lpcfg.serve.http.requests import Direct, GuardedRoute
from lpcfg.serve.routes import (
    batch,
    constituency,
    inference,
    jobs,
    kinds,
    reference,
    similarity,
    status,
)
from lpcfg.serve.routes.description import described
from lpcfg.serve.routes.files import page_routes
from lpcfg.serve.routes.runner import Runner
from lpcfg.serve.scheduling.work import Workers
from lpcfg.serve.state import Service
from lpcfg.settings import Settings

_OFFSETS = (
    "Offsets are half-open and count Unicode code points, as Python's strings do. JavaScript, "
    "Java and C# count UTF-16 units, of which an emoji has two: in JavaScript, "
    "`Array.from(text).slice(start, end).join('')` is what stands there. `start` and `end` of "
    "constituents, constraints and spans count tokens; `start_char` and `end_char` beside them "
    "count code points."
)
_ROUTERS = (
    constituency.router,
    batch.router,
    jobs.guarded,
    jobs.router,
    similarity.router,
    status.router,
    inference.router,
    inference.guarded,
)


def create_app(settings: Settings) -> FastAPI:
    """Create the service under these settings. Raise at once if a model is not in the store."""
    service = Service.of(settings)
    app = _Application(
        title="lpcfg",
        version="1",
        summary="Constituency parsing that says how sure it is of every node",
        description=_OFFSETS,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_running,
    )
    app.state.service = service
    routers = (kinds.router_of(settings), *_ROUTERS)
    for router in routers:
        app.include_router(router)
    guarded = [one for router in routers for one in router.routes if isinstance(one, GuardedRoute)]
    service.guarded = frozenset(one.path for one in guarded)
    app.router.routes += [reference.route(app), *page_routes()]
    problems.install(app)
    app.add_middleware(Direct, routes=guarded)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("*",),
            expose_headers=("X-Request-ID", "Retry-After"),
        )
    return app


class _Application(FastAPI):
    """An application whose faults are observed as well: nothing stands around the observation."""

    def build_middleware_stack(self) -> ASGIApp:
        return Observed(super().build_middleware_stack(), self.state.service)

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description, with this service's limits."""
        if self.openapi_schema is None:
            described(super().openapi(), self.state.service.settings)
        return super().openapi()


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    """Run the workers while the application runs, and load the models in the background."""
    service: Service = app.state.service
    with threadpool_limits(1):  # each worker is already a thread of its own
        try:
            service.workers = Workers(service.settings.threads, service.admission)
        except SettingsError as error:
            service.failure = error
            raise
        loading = asyncio.create_task(service.load())
        loading.add_done_callback(service.loaded)
        jobs = (
            []
            if service.jobs is None
            else [asyncio.create_task(Runner(service, service.jobs).run())]
        )
        tidying = asyncio.create_task(service.keep_small())
        try:
            yield
        finally:
            for task in (loading, tidying, *jobs):
                task.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            service.models.close()
            service.workers.close()
            service.reader.shutdown(wait=False)
            if service.traces is not None:
                service.traces.close()
