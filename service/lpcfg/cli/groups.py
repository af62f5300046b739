"""The group of commands that every kind of models has: train, parse and evaluate."""

from typing import Annotated

import typer

from lpcfg.api.stores import chosen
from lpcfg.base.options import Options
from lpcfg.cli import evaluate, parse
from lpcfg.cli.options import (
    Command,
    Dev,
    Given,
    Gold,
    Json,
    Name,
    Store,
    Workers,
    options_of,
    with_options,
)
from lpcfg.cli.terminal import answer, note, progress
from lpcfg.kinds.registry import AnyKind


def name_of(kind: AnyKind) -> str:
    """Return the name of a kind's group; "" for one whose commands have none."""
    return kind.command if kind.group is None else kind.group


def group_of(kind: AnyKind) -> typer.Typer:
    """Make the group of a kind's commands."""
    name, verb = name_of(kind), kind.verb
    group = typer.Typer(
        help=f"Learn {kind.title}s from {kind.data}, and use them.",
        epilog=f"Example: lpcfg {name} {verb} MODEL sentences.txt",
        no_args_is_help=True,
    )
    if kind.training is not None:
        example = f"Example: lpcfg {name} train FILE --name mine --dev OTHER"
        group.command("train", epilog=example)(_training(kind, kind.training))
    example = f"Example: echo 'The dog barked.' | lpcfg {name} {verb} mine --json"
    group.command(verb, epilog=example)(parse.command(kind))
    group.command("evaluate", epilog=f"Example: lpcfg {name} evaluate mine FILE")(
        evaluate.command(kind)
    )
    return group


def _training(kind: AnyKind, wanted: type[Options]) -> Command:
    """Make the command that trains models of a kind."""

    @with_options(wanted)
    def train(
        files: Gold,
        name: Name,
        dev: Dev = None,
        *,
        given: Given,
        licence: Annotated[
            str, typer.Option(help="Licence of the gold data, for the model's card.")
        ] = "not stated",
        workers: Workers = None,
        store: Store = None,
        json: Json = False,
    ) -> None:
        """Learn a model, evaluate it, and publish it as the next version of NAME."""
        options = options_of(wanted, given, kind.title)
        place = chosen(store, workers)
        with progress() as show:
            made = kind.train(
                files,
                options,
                store=place.store,
                name=name,
                dev=dev or (),
                licence=licence,
                workers=place.threads,
                progress=show,
            )
        for told in made.notes:
            note(told)
        reference = made.reference
        value = {"name": reference.name, "version": reference.version, **made.facts}
        answer(value, "\n".join(made.lines), json=json)

    return train
