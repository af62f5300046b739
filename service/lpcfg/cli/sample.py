"""`lpcfg sample`: draw trees of a known L-PCFG, to try the theory with."""

from pathlib import Path
from typing import Annotated

import typer

from lpcfg.cli.options import Json
from lpcfg.cli.terminal import answer


def sample(
    grammar: Annotated[
        Path, typer.Argument(metavar="GRAMMAR.toml", help="A file like examples/two_state.toml.")
    ],
    count: Annotated[
        int | None, typer.Option(min=1, show_default="10", help="How many trees.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, show_default="1", help="Seed: the same seed gives the same trees."),
    ] = None,
    max_words: Annotated[int, typer.Option(min=1, help="Largest number of words in a tree.")] = 200,
    enumerate_all: Annotated[
        bool,
        typer.Option(
            "--enumerate", help="Print every tree of up to --max-words words once instead."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Print trees drawn from a known grammar, one a line; or, with --enumerate, all trees, shortest
    first.

    With --json, objects with `tree` and, of enumerated trees, `probability`.
    """
    if enumerate_all and (count is not None or seed is not None):
        raise typer.BadParameter(
            "all trees are printed: omit --count and --seed", param_hint="--enumerate"
        )
    from lpcfg.grammar.known import enumerate_trees, read_lpcfg, sample_trees
    from lpcfg.trees.brackets import write

    tables = read_lpcfg(grammar)
    if enumerate_all:
        for tree, probability in enumerate_trees(tables, max_words):
            text = write(tree)
            answer({"tree": text, "probability": probability}, text, json=json)
        return
    for tree in sample_trees(
        tables, count or 10, seed=1 if seed is None else seed, max_words=max_words
    ):
        answer({"tree": write(tree)}, write(tree), json=json)
