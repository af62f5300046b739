"""Options that several commands share, worded once."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from lpcfg.base.errors import LpcfgError


class Tags(StrEnum):
    """The tags that a parser uses: its own or the gold ones."""

    PREDICTED = "predicted"
    GOLD = "gold"


class Objective(StrEnum):
    """The objectives that the best tree can maximise."""

    MAX_RULE = "max-rule"
    MAX_MARGINAL = "max-marginal"
    MAX_PRODUCT = "max-product"
    MAX_SPANS = "max-spans"


@contextmanager
def wrong_usage(option: str | None = None) -> Iterator[None]:
    """Report a refused option as wrong usage: the command was not understood."""
    try:
        yield
    except LpcfgError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


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
    typer.Option(metavar="FILE", help="Trees to evaluate on; may be given several times."),
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
Maximise = Annotated[
    Objective | None,
    typer.Option(
        help="Objective that the best tree maximises; by default max-spans where a rescoring layer "
        "decides, else max-rule."
    ),
]
Rescore = Annotated[
    bool,
    typer.Option(
        "--rescore/--no-rescore", help="Let the rescoring layer decide, or the tensors alone."
    ),
]
