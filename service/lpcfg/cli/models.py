"""`lpcfg models`: list, show, verify and remove the models of a store."""

from typing import Annotated, Any

import typer

from lpcfg.api.stores import chosen_store
from lpcfg.cli.options import Json, Model, Store
from lpcfg.cli.terminal import answer, note, result, result_json, result_table

app = typer.Typer(
    help="List, show, verify and remove the models of a store.",
    epilog="Example: lpcfg models list",
    no_args_is_help=True,
)


@app.command("list", epilog="Example: lpcfg models list --store model_store --json")
def list_(store: Store = None, json: Json = False) -> None:
    """List every published version of a store, one a line; without one, also the package's."""
    from lpcfg.store.places import default_store
    from lpcfg.store.versions import BUILT_IN, list_models

    place = chosen_store(store)
    found = list_models(place)
    if place == default_store():
        own = {model.reference.name for model in found}
        found += [model for model in list_models(BUILT_IN) if model.reference.name not in own]
    if json:
        for model in found:
            result_json(
                {
                    "name": model.reference.name,
                    "version": model.reference.version,
                    "hash": model.reference.hash,
                    "created": model.created,
                    "bytes": model.size,
                    "facts": model.facts,
                    "problem": model.problem,
                }
            )
        return
    if not found:
        note(f"there are no models in {place}")
    for model in found:
        line = f"{model.size / 1e6:.1f} MB, {model.created}"
        result(f"{model.reference}  {line if model.problem is None else model.problem}")


@app.command(epilog="Example: lpcfg models show en --card")
def show(
    model: Model,
    card: Annotated[bool, typer.Option("--card", help="Print the whole model card.")] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show the main facts of a version, on one screen; with --json, its whole manifest."""
    from lpcfg.kinds.registry import kind_of
    from lpcfg.report.page import flat, text_of
    from lpcfg.store.versions import load

    if card and json:
        raise typer.BadParameter(
            "--card prints Markdown: leave one of both out", param_hint="--json"
        )
    stored = load(model, chosen_store(store))
    if json:
        result_json({**stored.manifest, "hash": stored.reference.hash})
    elif card:
        result(stored.card.rstrip("\n"))
    else:
        facts: Any = stored.manifest["facts"]
        scores = kind_of(facts).scores(facts)
        rows = sorted(flat({**facts, "dev": next(iter(scores.values()), {})}), key=_place)
        about = {"created": str(stored.manifest["created"]), "hash": stored.reference.hash}
        result(f"{stored.reference}\n")
        result_table(
            (_cut(name, _NAME), _cut(text_of(value), _WIDTH))
            for name, value in [*about.items(), *rows[:_ROWS]]
        )
        result("\nthe model card: --card; everything: --json")


_FIRST = (
    "kind",
    "treebank.licence",
    "licence",
    "sizes.trees",
    "sizes.tokens",
    "sizes.words",
    "sizes.rules",
    "dev.f1",
    "dev.precision",
    "dev.recall",
    "dev.exact_match",
    "dev.tag_accuracy",
    "dev.calibration_error",
    "dev.sentences",
)


def _place(row: tuple[str, object]) -> tuple[int, bool]:
    name = row[0]
    return _FIRST.index(name) if name in _FIRST else len(_FIRST), not name.startswith("dev.")


_ROWS = 16  # with the lines around them, a screen of 24 lines
_NAME, _WIDTH = 26, 52  # of names and values in a screen of 80 columns


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


@app.command(epilog="Example: lpcfg models verify en@1")
def verify(model: Model, store: Store = None, json: Json = False) -> None:
    """Check size and SHA-256 of every file of a version, and that the files are a usable model."""
    from lpcfg.kinds.registry import loaded
    from lpcfg.store.versions import load_checked

    stored, checked = load_checked(model, chosen_store(store))
    loaded(stored)
    if json:
        result_json([{"path": f.path, "bytes": f.size, "sha256": f.sha256} for f in checked])
        return
    result_table([(file.sha256, str(file.size), file.path) for file in checked])


@app.command(epilog="Example: lpcfg models remove mine@3")
def remove(model: Model, store: Store = None, json: Json = False) -> None:
    """Remove one version for good. A bare NAME is enough if it has a single version."""
    from lpcfg.store.versions import remove as remove_version

    removed = str(remove_version(model, chosen_store(store)))
    answer({"removed": removed}, f"removed {removed}", json=json)
