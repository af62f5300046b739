"""/docs: the OpenAPI description as one page, without scripts or styles from elsewhere.

FastAPI's own pages load scripts from other sites. A service without internet cannot do this, and
this service's content security policy forbids it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from lpcfg.serve.http.problems import KINDS

Json = Mapping[str, Any]


def route(app: FastAPI) -> Route:
    """Create the route of the page."""

    async def docs(_: Request) -> HTMLResponse:
        return HTMLResponse(page(app.openapi()))

    return Route("/docs", docs, methods=["GET"], include_in_schema=False)


def page(api: Json) -> str:
    """Write the page for an OpenAPI description."""
    info = api["info"]
    return (
        '<!doctype html><html lang="en" data-theme="auto"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}: the API</title>"
        '<link rel="icon" href="/icon.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/page.css"><link rel="stylesheet" href="/docs.css">'
        '<script type="module" src="/docs.js"></script></head><body>'
        '<a class="skip" href="#endpoints">Skip to the endpoints</a>'
        f'{_HEADER}<div class="docs">{_contents(api)}<main>'
        f'<h2 class="lead">The HTTP API</h2><p>{_text(info["summary"])}. '
        '<a href="/openapi.json">openapi.json</a> says the same to programs.</p>'
        f"<p>{_text(info['description'])}</p>"
        + "".join(_operations(api))
        + "".join(_schemas(api["components"]["schemas"]))
        + "".join(_problems())
        + "</main></div></body></html>"
    )


_HEADER = (
    '<header class="top"><h1><img src="/icon.svg" alt="" width="24" height="24"> lpcfg</h1>'
    '<nav aria-label="Pages"><a href="/">Parse</a><a href="/examples">Examples</a>'
    '<a href="/docs" aria-current="page">API</a></nav>'
    '<label class="model" hidden>Key <input id="key" type="password" autocomplete="off" '
    'placeholder="if one is asked for"></label>'
    '<button id="theme" class="quiet" type="button" hidden></button></header>'
)


def _contents(api: Json) -> str:
    """Link to every endpoint and to the other parts of the page."""
    endpoints = "".join(
        f'<li><a href="#{_anchor(method, path)}"><b>{method.upper()}</b> '
        f"<span>{escape(path).replace('/', '<wbr>/')}</span></a></li>"
        for path, methods in api["paths"].items()
        for method in methods
    )
    others = '<li><a href="#objects">Objects</a></li><li><a href="#problems">Problems</a></li>'
    return (
        '<nav class="contents" aria-label="On this page"><details open>'
        f"<summary>On this page</summary><ul>{endpoints}{others}</ul></details></nav>"
    )


def _anchor(method: str, path: str) -> str:
    return f"{method}-" + "-".join(re.findall(r"\w+", path))


def _text(words: str) -> str:
    """Write text with what stands in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(words))


def _operations(api: Json) -> Iterator[str]:
    yield '<h2 id="endpoints" tabindex="-1">Endpoints</h2>'
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            yield f'<section id="{_anchor(method, path)}">'
            yield f"<h3><code>{method.upper()} {escape(path)}</code></h3>"
            yield f"<p><strong>{_text(operation['summary'])}.</strong> "
            yield f"{_text(operation.get('description', ''))}</p>"
            yield from _parameters(operation.get("parameters", ()))
            for kind, content in operation.get("requestBody", {}).get("content", {}).items():
                yield from _content("Body", kind, content, api)
            yield from _answers(operation["responses"], api)
            yield _attempt(method, path, operation, api)
            yield "</section>"


def _answers(responses: Json, api: Json) -> Iterator[str]:
    for kind, content in _success(responses).items():
        yield from _content("Answer", kind, content, api)
    yield '<ul class="statuses">'
    for status, answer in responses.items():
        yield f"<li><b>{status}</b> {_text(answer['description'])}</li>"
    yield "</ul>"


def _success(responses: Json) -> Json:
    """Return the forms of the answer when all goes well, whose status is 200, 202 or 204."""
    found: Json = next(one for status, one in responses.items() if status.startswith("2"))
    content: Json = found.get("content", {})
    return content


def _attempt(method: str, path: str, operation: Json, api: Json) -> str:
    """Write a form that sends the request; docs.js shows it and its answer."""
    name = f"{method.upper()} {path}"
    fields = "".join(map(_field, operation.get("parameters", ())))
    body = ""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        example = _written(_examples(content, api)[0])
        body = (
            f'<label>Body ({kind})<textarea class="code" name="body" data-type="{kind}" rows="6" '
            f'spellcheck="false">{escape(example)}</textarea></label>'
        )
    kinds = list(_success(operation["responses"]))
    accept = "".join(f"<option>{kind}</option>" for kind in kinds)
    choice = f'<label>Answer as <select name="accept">{accept}</select></label>'
    return (
        f'<form class="try" data-method="{method.upper()}" data-path="{escape(path)}" hidden '
        f'aria-label="Try {escape(name)}">{fields}{body}{choice if len(kinds) > 1 else ""}'
        '<div class="tools"><button class="main">Try it</button>'
        '<button type="button" class="curl">Copy as curl</button>'
        '<span class="told" role="status"></span></div>'
        '<pre class="answer" tabindex="0" aria-label="Answer" hidden></pre></form>'
    )


def _field(parameter: Json) -> str:
    name, place = escape(parameter["name"]), parameter["in"]
    needed = " required" if parameter.get("required") else ""
    return f'<label>{name} <input name="{name}" data-in="{place}"{needed}></label>'


def _parameters(parameters: Any) -> Iterator[str]:
    for one in parameters:
        shape = escape(_shape(one["schema"]))
        said = _text(one.get("description", one["schema"].get("description", "")))
        yield f"<p>In the {one['in']}: <code>{escape(one['name'])}</code>, {shape}. {said}</p>"


def _content(what: str, kind: str, content: Json, api: Json) -> Iterator[str]:
    yield f"<p>{what}: <code>{kind}</code> {_linked(content.get('schema', {}))}</p>"
    for example in _examples(content, api):
        yield f'<pre tabindex="0">{escape(_written(example))}</pre>'


def _examples(content: Json, api: Json) -> list[Any]:
    """Return the examples of a body, or one built from those of its members."""
    schema, schemas = content.get("schema", {}), api["components"]["schemas"]
    if "example" in content:
        return [content["example"]]
    named = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
    return named.get("examples") or [example_of(schema, schemas)]


def _written(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example, indent=2)


def _schemas(schemas: Json) -> Iterator[str]:
    yield '<h2 id="objects">Objects</h2>'
    for name, schema in schemas.items():
        yield f'<section id="{escape(name)}"><h3>{escape(name)}</h3>'
        yield f"<p>{_text(schema.get('description', ''))}</p><dl>"
        for member, what in schema.get("properties", {}).items():
            needed = "" if member in schema.get("required", ()) else " (optional)"
            yield f"<dt><code>{escape(member)}</code>{needed}</dt>"
            yield f"<dd>{_linked(what)} {_text(what.get('description', ''))}</dd>"
        yield "</dl></section>"


def _problems() -> Iterator[str]:
    yield '<h2 id="problems">Problems</h2>'
    for kind, known in KINDS.items():
        yield f'<section id="problem-{kind}"><h3>{known.status} {escape(known.title)}</h3>'
        yield f"<p>{_text(known.meaning)}.</p></section>"


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
