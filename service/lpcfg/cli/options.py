"""Flags that several commands share, and flags of classes of options."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field, fields
from functools import wraps
from itertools import chain
from typing import Annotated, Any, Literal

import typer

from lpcfg.base.errors import LpcfgError
from lpcfg.base.options import Options

Command = Callable[..., None]
Given = Mapping[str, object]
"""The options that were given, by name: what `with_options` makes of flags."""


@contextmanager
def wrong_usage(option: str | None = None) -> Iterator[None]:
    """Report a refused option as wrong usage: the command was not understood."""
    try:
        yield
    except LpcfgError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def with_options(*classes: type[Options]) -> Callable[[Command], Command]:
    """Give a command a flag for every option of these classes, in place of its parameter `given`.

    The flag has the option's name, help, limits and choices. A name that several classes have is
    one flag, as the first of them declares it; `options_of` holds it against the limits of the
    class that is wanted.
    """
    flags: dict[str, inspect.Parameter] = {}
    for declared in chain(*map(fields, classes)):
        flags.setdefault(declared.name, _flag(declared))

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(context: typer.Context, **values: object) -> None:
            asked = {name: values.pop(name) for name in flags}
            given = {name: asked[name] for name in flags if _is_given(context, name)}
            command(given=given, **values)

        own = inspect.signature(command).parameters.values()
        listed = [flag for p in own for flag in (flags.values() if p.name == "given" else [p])]
        context = inspect.Parameter("context", _BY_NAME, annotation=typer.Context)
        signature = inspect.Signature([context, *(p.replace(kind=_BY_NAME) for p in listed)])
        run.__signature__ = signature  # type: ignore[attr-defined]  # Typer makes flags of it
        run.__annotations__ = {}
        return run

    return decorate


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


_BY_NAME = inspect.Parameter.KEYWORD_ONLY


def _flag(declared: "Field[Any]") -> inspect.Parameter:
    """Make the parameter of an option."""
    limits, flag = declared.metadata, flag_of(declared.name)
    kind: Any = Literal[limits["choices"]] if limits["choices"] else limits["kind"]
    if declared.default is True:
        flag = f"{flag}/--no-{flag[2:]}"
    said = f"{limits['help'][0].upper()}{limits['help'][1:]}."
    info = typer.Option(flag, help=said, min=limits["least"])
    return inspect.Parameter(
        declared.name,
        _BY_NAME,
        default=declared.default,
        annotation=Annotated[kind | None if declared.default is None else kind, info],
    )


def flag_of(option: str) -> str:
    """Write an option's name as a flag."""
    return f"--{option.replace('_', '-')}"


def options_of(wanted: type[Options], given: Given, title: str) -> Any:
    """Make options of those that were given. Refuse one that the class, of a kind of models with
    this title, does not have.
    """
    known = {one.name for one in fields(wanted)}
    for name in given:
        if name not in known:
            raise typer.BadParameter(f"a {title} has no option {flag_of(name)}: leave it out")
    with wrong_usage():
        return wanted.of(given)


def style_rules(given: str | None) -> tuple[str, ...] | None:
    """List the names of the rules in an option, or return None if it is not given."""
    return None if given is None else tuple(filter(None, given.split(",")))


def _named(store: str | None) -> str | None:
    if store == "":
        raise typer.BadParameter("expected a folder or a URL, got nothing: name one or omit it")
    return store


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="NAME for its newest version, NAME@VERSION, or the path of a version's folder.",
    ),
]
Name = Annotated[str, typer.Option(help="Name under which the model is published.")]
Dev = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="Gold data to evaluate on; may be given several times."),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="How many work at once; by default one per core.")
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        callback=_named,
        help="Model store, a folder or an fsspec URL; by default LPCFG_MODEL_STORE.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Gold = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Files and folders of gold data, in the form of the model's kind, also .gz; `-` is "
        "standard input.",
    ),
]
Treebanks = Annotated[
    list[str],
    typer.Argument(
        metavar="TREEBANK",
        help="Files and folders of Penn brackets, also .gz; `-` is standard input.",
    ),
]
StyleRules = Annotated[
    str | None,
    typer.Option(
        "--style",
        metavar="RULES",
        help="Rules that bring trees into one style, commas between: `all`, or some of markup, "
        "tags, titles, w-words, to, inner-stops, stops, flat-nouns (see docs/training.md).",
    ),
]
