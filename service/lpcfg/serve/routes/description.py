"""Complete the OpenAPI description that FastAPI makes: problems, limits, and what it cannot say.

FastAPI lists a problem as JSON, adds answers that this service never gives, and knows nothing of
limits that are settings, nor whether keys are asked for.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from lpcfg.kinds.registry import all_kinds
from lpcfg.protocol.schemas import InferRequest
from lpcfg.serve.http.problems import MEDIA_TYPE
from lpcfg.serve.routes.batch import kinds_of, parameters_of
from lpcfg.settings import Settings

Json = dict[str, Any]
_OTHERS = ("HTTPValidationError", "ValidationError")  # FastAPI's own problems
_RELOAD = "/v1/models/{name}/reload"
_PROBLEM = {"schema": {"$ref": "#/components/schemas/Problem"}}


def described(api: Json, settings: Settings) -> Json:
    """Complete a description, in place, for a service with these settings."""
    for path, operation in _operations(api):
        file = settings.admin_keys_file if path == _RELOAD else settings.api_keys_file
        if file is None:
            operation.pop("security", None)
        if "application/x-ndjson" in operation.get("requestBody", {}).get("content", {}):
            operation.setdefault("parameters", []).extend(_query(path, settings))
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":  # never null, even if the endpoint has a shorter path too
                parameter["schema"] = parameter["schema"].get("anyOf", [parameter["schema"]])[0]
        for status, answer in [*operation["responses"].items()]:
            content = answer.get("content", {})
            if MEDIA_TYPE in content:
                answer["content"] = {MEDIA_TYPE: _PROBLEM}
            elif any(other in str(content) for other in _OTHERS):
                del operation["responses"][status]
    schemas = api["components"]["schemas"]
    schemas.update(_schemas_of(InferRequest))
    for other in _OTHERS:
        schemas.pop(other, None)
    for name, schema in schemas.items():
        if name.endswith(("Request", "Input")):
            _limit(schema["properties"], settings)
            _choose(schema)
    names = [kind.schema().__name__ for kind in all_kinds()]
    schemas["BatchLine"]["properties"]["sentence"]["anyOf"] = [
        *({"$ref": f"#/components/schemas/{name}"} for name in names),
        {"type": "null"},
    ]
    schemas["MarginalsRequest"]["properties"]["sentences"]["anyOf"][0].update(
        minItems=1, maxItems=1
    )
    return api


def _query(path: str, settings: Settings) -> Iterator[Json]:
    """Describe the query of a batch: the options of all kinds of models that may answer it."""
    seen: dict[str, Json] = {}
    for kind in kinds_of(path):
        for name, schema in parameters_of(kind, settings).model_json_schema()["properties"].items():
            if name not in seen:
                seen[name] = {"name": name, "in": "query", "required": False, "schema": schema}
                yield seen[name]
            elif schema != (other := seen[name]["schema"]):
                seen[name]["schema"] = {"anyOf": [other, schema]}


def _schemas_of(model: type[BaseModel]) -> Json:
    """Return the schemas of a body that its endpoint reads by itself."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), model.__name__: schema}


def _operations(api: Json) -> Iterator[tuple[str, Json]]:
    for path, methods in api["paths"].items():
        for operation in methods.values():
            yield path, operation


def _limit(members: Json, settings: Settings) -> None:
    """Say the limits of a request's lists."""
    lists = {
        "sentences": settings.max_sentences,
        "trees": settings.max_sentences,
        "pairs": settings.max_sentences,
        "tokens": settings.max_tokens,
        "tags": settings.max_tokens,
    }
    for member, schema in members.items():
        for one in schema.get("anyOf", [schema]):
            if one.get("type") == "array" and member in lists:
                one["maxItems"] = lists[member]


def _choose(schema: Json) -> None:
    """Say that a request has either `text` or `sentences`; null is as good as none.

    Generators of clients pass over `if`, but give up at `oneOf` beside properties.
    """
    if {"text", "sentences"} <= schema["properties"].keys():
        schema["if"] = {"required": ["text"], "properties": {"text": {"type": "string"}}}
        schema["then"] = {"properties": {"sentences": {"type": "null"}}}
        schema["else"] = {"required": ["sentences"], "properties": {"sentences": {"type": "array"}}}
