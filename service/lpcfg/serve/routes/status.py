"""The endpoints for models, health (at Open Inference's paths), metrics and reloading."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from lpcfg.protocol.schemas import (
    Live,
    ModelDetails,
    ModelFacts,
    ModelReady,
    Models,
    ModelVersion,
    Ready,
)
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.problems import Refused, documented
from lpcfg.serve.served import starting
from lpcfg.serve.state import TheService

Wanted = Annotated[int, Query(ge=1, lt=10**9)]


async def require_key(request: Request, service: TheService) -> None:
    """Raise Refused without a known key, if the service asks for keys."""
    if service.keys is not None:
        service.keys.owner(request.headers)


async def require_admin(request: Request, service: TheService) -> None:
    """Raise Refused unless the key is an administrator's.

    Without administrators, raise not found.
    """
    if service.admins is None:
        raise Refused("not-found", "expected a path that /docs lists, got another: correct it")
    service.admins.owner(request.headers)


router = APIRouter()


@router.get(
    "/v1/models",
    dependencies=[Depends(BEARER), Depends(require_key)],
    responses=documented("key", "starting"),
    response_model_exclude_unset=True,
    summary="The models that are served",
)
async def models(service: TheService) -> Models:
    """List every model with its kind, its version and its labels, once all are ready."""
    if not service.models.ready:
        raise starting()
    told = map(service.models.described, service.models)
    return Models(models=[ModelFacts(**one.model_dump(exclude={"facts"})) for one in told])


@router.get(
    "/v1/models/{name}",
    dependencies=[Depends(BEARER), Depends(require_key)],
    responses=documented("key", "not-found", "starting"),
    response_model_exclude_unset=True,
    summary="One model that is served",
)
async def model(name: str, service: TheService) -> ModelDetails:
    """Return the model of this name, with the facts of its training."""
    return service.models.described(service.models.at(name))


@router.post(
    "/v1/models/{name}/reload",
    dependencies=[Depends(BEARER), Depends(require_admin)],
    responses=documented("key", "not-found", "model"),
    summary="Serve another version of a model",
)
async def reload(
    name: str, service: TheService, version: Wanted | Literal["newest"] | None = None
) -> ModelVersion:
    """Load, verify and warm a version of a model, then replace the old one in one step.

    Without `version`, that is the newest one, unless the service was started with, or reloaded to,
    a version by its number: this one stays until `version` names another, or `newest`. Only
    administrators may do this. Reloads wait for one another. Requests in progress are answered by
    the version they began with. If the version cannot be used, it is refused with the reason and
    the old one keeps answering.
    """
    one = await service.models.reload(name, version)
    return ModelVersion(name=one.name, version=one.version, hash=one.hash)


@router.get("/v2/health/live", responses=documented(), summary="Whether the process runs")
async def live() -> Live:
    """Answer 200 as long as the event loop runs."""
    return Live(live=True)


@router.get(
    "/v2/health/ready", responses=documented("starting"), summary="Whether to send requests"
)
async def ready(service: TheService) -> Ready:
    """Answer 200 once every model is verified and warm, until the process is told to end."""
    if not service.ready:
        raise Refused(
            "starting", "expected a service that is ready, got one that is not", retry_after=1.0
        )
    return Ready(ready=True)


@router.get(
    "/v2/models/{name}/ready",
    responses=documented("not-found", "starting"),
    summary="Whether a model is ready",
)
async def model_ready(name: str, service: TheService) -> ModelReady:
    """Answer 200 once this model is verified and warm."""
    return ModelReady(name=service.models.at(name).reference.name, ready=True)


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **documented(),
    },
    summary="Metrics for Prometheus",
)
async def metrics(service: TheService) -> Response:
    """Return counts and latencies of requests, and the state of queue, cache and process."""
    text = service.metrics.text(service.models)
    return Response(text, media_type="text/plain; version=0.0.4")
