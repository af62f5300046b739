"""Answers by the Open Inference Protocol, version 2, as Triton, KServe and their clients speak it.

A model of any kind takes a tensor `text` of sentences and gives `answer`, the JSON that the
endpoint of its kind gives for each; constituency models give `tree` as well, the best trees in
brackets (empty where there is none). Strings may come in Triton's binary form; answers are JSON,
which its clients read as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version as installed
from typing import Any

import pydantic_core
from fastapi import APIRouter, Depends
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from lpcfg.base.errors import InputError
from lpcfg.kinds.registry import AnyKind, AnyLoaded
from lpcfg.protocol.schemas import (
    InferRequest,
    InferResponse,
    ModelReady,
    ServerMetadata,
    TensorMetadata,
    TensorModel,
)
from lpcfg.serve.http.encoder import encoded
from lpcfg.serve.http.keys import BEARER
from lpcfg.serve.http.problems import InvalidError, documented, problem_of_validation
from lpcfg.serve.http.requests import GuardedRoute, body_of, decoded, read_json
from lpcfg.serve.routes import inputs
from lpcfg.serve.routes.tasks import Answer, Asked, answered
from lpcfg.serve.scheduling.work import Task
from lpcfg.serve.state import Service, TheService
from lpcfg.settings import Settings

INFER = "/v2/models/{name}/infer"
_JSON_LENGTH = "inference-header-content-length"
_SIZE = 4  # bytes of the length before a string
_BYTES = "BYTES"
_TEXT = TensorMetadata(name="text", datatype=_BYTES, shape=[-1])
_ANSWER = "answer"

router = APIRouter()
guarded = APIRouter(route_class=GuardedRoute, dependencies=[Depends(BEARER)])


@router.get("/v2", responses=documented(), summary="What this server is")
async def server() -> ServerMetadata:
    """Return the server's name and version."""
    return ServerMetadata(
        name="lpcfg", version=installed("lpcfg"), extensions=["binary_tensor_data"]
    )


@router.get(
    "/v2/models/{name}",
    responses=documented("not-found", "starting"),
    summary="What tensors a model takes and gives",
)
@router.get(
    "/v2/models/{name}/versions/{version}",
    responses=documented("not-found", "starting"),
    summary="What tensors a version takes and gives",
)
async def metadata(name: str, service: TheService, version: str | None = None) -> TensorModel:
    """Return the names, types and shapes of the tensors of a model."""
    model = _named(service, name, version)
    return TensorModel(
        name=model.reference.name,
        versions=[str(model.reference.version)],
        platform="lpcfg",
        inputs=[_TEXT],
        outputs=[
            TensorMetadata(name=one, datatype=_BYTES, shape=[-1]) for one in _outputs(model.kind)
        ],
    )


def _outputs(kind: AnyKind) -> list[str]:
    return [*kind.tensors, _ANSWER]


@router.get(
    "/v2/models/{name}/versions/{version}/ready",
    responses=documented("not-found", "starting"),
    summary="Whether a version of a model is ready",
)
async def version_ready(name: str, version: str, service: TheService) -> ModelReady:
    """Answer 200 once this version is verified and warm."""
    return ModelReady(name=_named(service, name, version).reference.name, ready=True)


_INFERRING: dict[str, Any] = {
    "response_model": InferResponse,
    "responses": documented(
        *("content", "limit", "body-limit", "not-found", "key", "quota", "overload"),
        *("starting", "deadline"),
    ),
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/InferRequest"}}
            },
        }
    },
}


@guarded.post(INFER, summary="Answer a tensor of sentences", **_INFERRING)
@guarded.post(
    "/v2/models/{name}/versions/{version}/infer",
    summary="Answer a tensor of sentences by a version",
    **_INFERRING,
)
async def infer(
    name: str, request: Request, service: TheService, version: str | None = None
) -> Response:
    """Answer each string of the tensor `text` as one sentence."""
    settings, stop = service.settings, service.stop()
    model = _named(service, name, version)
    read = partial(_read, json_length=request.headers.get(_JSON_LENGTH), kind=model.kind)
    given = await decoded(await body_of(request), read, service)
    asked = Asked(model, model.kind.options())
    inputs.admit(service, request, None, given.texts)

    def tasks() -> Iterator[Task[Answer]]:
        found = inputs.sentences_of(None, given.texts, model.segmenter, settings, stop)
        for number, one in enumerate(found):
            yield asked.task(service.cache, one, stop, f"/inputs/0/data/{number}")

    estimate = inputs.estimate(None, given.texts, settings)
    answers = await answered(service, request, INFER, model, tasks, estimate, stop)
    return Response(_written(model, given, answers), media_type="application/json")


def _named(service: Service, name: str, version: str | None) -> AnyLoaded:
    return service.models.at(name if version is None else f"{name}@{version}")


@dataclass(frozen=True)
class _Given:
    """The sentences of a request, and the outputs that it names."""

    id: str | None
    texts: list[str]
    outputs: list[str]


def _read(body: bytes, settings: Settings, *, json_length: str | None, kind: AnyKind) -> _Given:
    """Read a request, whose strings may follow its JSON."""
    length = len(body)
    if json_length is not None:
        length = int(json_length) if json_length.isdecimal() and len(json_length) < 10 else -1
        if not 0 <= length <= len(body):
            raise InputError(
                f"expected the length of the JSON in {_JSON_LENGTH}, at most {len(body)}, got "
                f"{json_length!r}: send how many bytes of the body are JSON"
            )
    value = read_json(body[:length], settings)
    try:
        asked = InferRequest.model_validate(value)
    except ValidationError as error:
        raise InvalidError(problem_of_validation(_in_body(error))) from None
    given = next((one for one in asked.inputs if one.name == _TEXT.name), None)
    if given is None or given.datatype != _BYTES:
        raise InputError(
            "expected a tensor `text` of the datatype BYTES, got none: send the sentences in it",
            pointer="/inputs",
        )
    texts = list(_strings(body[length:])) if given.data is None else _flat(given.data)
    known = _outputs(kind)
    outputs = [one.name for one in asked.outputs or ()] or known
    for name in outputs:
        if name not in known:
            raise InputError(
                f"expected outputs among {', '.join(known)}, got {name!r}: name one of them",
                pointer="/outputs",
            )
    return _Given(asked.id, texts, outputs)


def _in_body(error: ValidationError) -> list[dict[str, Any]]:
    return [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]


def _flat(data: list[Any]) -> list[str]:
    """Return the strings of a tensor of any shape, in order."""
    texts: list[str] = []
    for one in data:
        if isinstance(one, list):
            texts += _flat(one)
        elif isinstance(one, str):
            texts.append(one)
        else:
            raise InputError(
                "expected strings, got something else: send sentences",
                pointer="/inputs/0/data",
            )
    return texts


def _strings(data: bytes) -> Iterator[str]:
    """Yield strings of UTF-8, each after its length as four bytes, little-endian."""
    at = 0
    while at < len(data):
        start = at + _SIZE
        at = start + int.from_bytes(data[at:start], "little")
        if at > len(data):
            raise InputError(
                "expected strings with their lengths before them, got one that ends too early: "
                "send binary tensors as Triton defines them",
                pointer="/inputs/0",
            )
        try:
            yield data[start:at].decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"expected UTF-8, got something else ({error.reason}): send text",
                pointer="/inputs/0",
            ) from None


def _written(model: AnyLoaded, given: _Given, answers: list[Answer]) -> bytes:
    def tensor(name: str) -> dict[str, Any]:
        if name == _ANSWER:
            data = [one.body.decode() for one in answers]
        else:
            values = map(pydantic_core.from_json, (one.body for one in answers))
            data = [model.kind.tensor(name, one) for one in values]
        return {"name": name, "datatype": _BYTES, "shape": [len(data)], "data": data}

    told = {
        "model_name": model.reference.name,
        "model_version": str(model.reference.version),
        **({} if given.id is None else {"id": given.id}),
        "outputs": [tensor(name) for name in given.outputs],
    }
    return encoded(told)
