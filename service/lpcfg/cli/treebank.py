"""`lpcfg treebank`: look at a treebank before anything is learned from it."""

import typer

from lpcfg.cli.options import Json, Treebanks
from lpcfg.cli.terminal import answer

app = typer.Typer(
    help="Look treebanks over before training.",
    epilog="Example: lpcfg treebank stats trees.mrg",
    no_args_is_help=True,
)


@app.command(epilog="Example: lpcfg treebank stats trees.mrg --json")
def stats(treebanks: Treebanks, json: Json = False) -> None:
    """Count trees, words, labels and tags."""
    from lpcfg.trees.inspect import Inspection

    inspection = Inspection.of(treebanks)
    answer(inspection.as_dict(), "\n".join(inspection.sizes()), json=json)


@app.command(epilog="Example: lpcfg treebank check trees.mrg")
def check(treebanks: Treebanks, json: Json = False) -> None:
    """Read every tree; list odd ones, and what each rule of --style would change.

    A tree that cannot be read is an error that names its file, line and column.
    """
    from lpcfg.trees.inspect import Inspection

    inspection = Inspection.of(treebanks)
    answer(inspection.as_dict(), "\n".join(inspection.findings()), json=json)
