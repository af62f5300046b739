"""/docs: the OpenAPI description as one page, without scripts or styles from elsewhere.

FastAPI's own pages load scripts from other sites. A service without internet cannot do this, and
this service's content security policy forbids it.
"""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from lpcfg.web.http.problems import KINDS

Json = Mapping[str, Any]


def route(app: FastAPI) -> Route:
    """Create the route of the page."""

    async def docs(_: Request) -> HTMLResponse:
        return HTMLResponse(page(app.openapi()))

    return Route("/docs", docs, methods=["GET"], include_in_schema=False)


def page(api: Json) -> str:
    """Write the page for an OpenAPI description."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(api['info']['title'])}: the API</title>"
        '<link rel="stylesheet" href="/docs.css">'
        f"<main><h1>{escape(api['info']['title'])}: the API</h1>"
        f'<p>{escape(api["info"]["summary"])}. <a href="/openapi.json">openapi.json</a> says the '
        f"same to programs.</p><p>{escape(api['info']['description'])}</p>"
        + "".join(_operations(api))
        + "".join(_schemas(api["components"]["schemas"]))
        + "".join(_problems())
        + "</main></html>"
    )


def _operations(api: Json) -> Iterator[str]:
    yield "<h2>Endpoints</h2>"
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            yield f"<section><h3><code>{method.upper()} {escape(path)}</code></h3>"
            yield f"<p><strong>{escape(operation['summary'])}.</strong> "
            yield f"{escape(operation.get('description', ''))}</p>"
            yield from _parameters(operation.get("parameters", ()))
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                yield from _content("Body", kind, content, api)
            for status, answer in operation["responses"].items():
                yield f"<p>{status}: {escape(answer['description'])}</p>"
                for kind, content in answer.get("content", {}).items():
                    if status == "200":
                        yield from _content("Answer", kind, content, api)
            yield "</section>"


def _parameters(parameters: Any) -> Iterator[str]:
    for one in parameters:
        shape = escape(_shape(one["schema"]))
        yield f"<p>In the {one['in']}: <code>{escape(one['name'])}</code>, {shape}</p>"


def _content(what: str, kind: str, content: Json, api: Json) -> Iterator[str]:
    schema = content.get("schema", {})
    yield f"<p>{what}: <code>{kind}</code> {_linked(schema)}</p>"
    named = api["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
    examples = [content["example"]] if "example" in content else named.get("examples", [])
    for example in examples or [example_of(schema, api["components"]["schemas"])]:
        text = example if isinstance(example, str) else json.dumps(example, indent=2)
        yield f"<pre>{escape(text)}</pre>"


def _schemas(schemas: Json) -> Iterator[str]:
    yield "<h2>Objects</h2>"
    for name, schema in schemas.items():
        yield f'<section id="{escape(name)}"><h3>{escape(name)}</h3>'
        yield f"<p>{escape(schema.get('description', ''))}</p><dl>"
        for member, what in schema.get("properties", {}).items():
            needed = "" if member in schema.get("required", ()) else " (optional)"
            yield f"<dt><code>{escape(member)}</code>{needed}</dt>"
            yield f"<dd>{_linked(what)} {escape(what.get('description', ''))}</dd>"
        yield "</dl></section>"


def _problems() -> Iterator[str]:
    yield "<h2>Problems</h2>"
    for kind, known in KINDS.items():
        yield f'<section id="problem-{kind}"><h3>{known.status} {escape(known.title)}</h3>'
        yield f"<p>{escape(known.meaning)}.</p></section>"


def _linked(schema: Json) -> str:
    """Describe the type of a value in words, with links to objects."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(map(_linked, schema[several]))
    if schema.get("type") == "array":
        return f"list of {_linked(schema['items'])}"
    return escape(_shape(schema))


def _shape(schema: Json) -> str:
    if "enum" in schema:
        return " or ".join(f"“{value}”" for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        return " or ".join(map(_shape, schema["anyOf"]))
    bounds = {"minimum": "at least", "maximum": "at most"}
    limits = [f"{word} {schema[key]}" for key, word in bounds.items() if key in schema]
    return ", ".join([schema.get("type", "anything"), *limits])


def example_of(schema: Json, schemas: Json) -> Any:
    """Build a value of this schema from the examples of its members."""
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if schema.get("examples"):
        return schema["examples"][0]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return example_of(schema[several][0], schemas)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if "properties" in schema:
        return {name: example_of(one, schemas) for name, one in schema["properties"].items()}
    if schema.get("type") == "array":
        return [example_of(schema["items"], schemas)]
    return {"string": "…", "integer": 1, "number": 0.5, "boolean": True, "object": {}}.get(
        schema.get("type", "null")
    )
