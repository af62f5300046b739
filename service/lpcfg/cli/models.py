"""`lpcfg models`: what is in a model store."""

from collections.abc import Mapping

import typer

from lpcfg.cli.options import Json, Model, Store
from lpcfg.cli.terminal import note, result, result_json, result_table
from lpcfg.settings import read_settings

app = typer.Typer(
    help="List, show, verify and remove the models of a store.",
    epilog="Example: lpcfg models list",
    no_args_is_help=True,
)


def _store(given: str | None) -> str:
    return read_settings(model_store=given).model_store


@app.command("list", epilog="Example: lpcfg models list --store model_store --json")
def list_(store: Store = None, json: Json = False) -> None:
    """List every published version, one a line."""
    from lpcfg.models.store.versions import list_models

    found = list_models(_store(store))
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
        note(f"there are no models in {_store(store)}")
    for model in found:
        line = f"{model.size / 1e6:.1f} MB, {model.created}"
        result(f"{model.reference}  {line if model.problem is None else model.problem}")


@app.command(epilog="Example: lpcfg models show en")
def show(model: Model, store: Store = None, json: Json = False) -> None:
    """Show a version's card and facts; with --json, its manifest."""
    from lpcfg.models.store.versions import load

    stored = load(model, _store(store))
    if json:
        result_json({**stored.manifest, "hash": stored.reference.hash})
        return
    result(f"{stored.reference}  {stored.reference.hash}\n")
    result(stored.card.rstrip("\n") + "\n")
    facts = stored.manifest["facts"]
    result_table(_flat("", facts) if isinstance(facts, Mapping) else [])


def _flat(prefix: str, facts: Mapping[str, object]) -> list[tuple[str, str]]:
    """Nested facts as rows, `estimator.states  32`."""
    rows: list[tuple[str, str]] = []
    for key, value in facts.items():
        if isinstance(value, Mapping):
            rows += _flat(f"{prefix}{key}.", value)
        else:
            rows.append((prefix + key, str(value)))
    return rows


@app.command(epilog="Example: lpcfg models verify en@1")
def verify(model: Model, store: Store = None, json: Json = False) -> None:
    """Check size, shape and SHA-256 of everything a version holds."""
    from lpcfg.models.store.versions import verify as verify_files

    checked = verify_files(model, _store(store))
    if json:
        result_json([{"path": f.path, "bytes": f.size, "sha256": f.sha256} for f in checked])
        return
    result_table([(file.sha256, str(file.size), file.path) for file in checked])


@app.command(epilog="Example: lpcfg models remove mine@3")
def remove(model: Model, store: Store = None, json: Json = False) -> None:
    """Remove one version for good. A bare NAME is enough where it has a single version."""
    from lpcfg.models.store.versions import remove as remove_version

    removed = str(remove_version(model, _store(store)))
    if json:
        result_json({"removed": removed})
    else:
        result(f"removed {removed}")
