"""`lpcfg tree-probability`: how probable given trees are."""

from pathlib import Path
from typing import Annotated

import typer

from lpcfg.cli.options import Json, Model, Rescore, Store
from lpcfg.cli.terminal import result, result_json
from lpcfg.parsing.results import TreeProbability
from lpcfg.settings import read_settings

NOTHING_LEFT = TreeProbability(
    None, 0, None, None, "nothing is left of the tree without its traces"
)


def tree_probability(
    model: Model,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Penn brackets, also .gz; standard input if left out."),
    ] = None,
    rescore: Rescore = True,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print log p(tree), log p(sentence) and log p(tree | sentence) of every tree, or why not.

    What does not apply is `-`; the log of a tree of probability zero is `-inf`.
    """
    from lpcfg.parsing.parser import Parser
    from lpcfg.parsing.to_json import tree_probability_json
    from lpcfg.trees.brackets import read
    from lpcfg.trees.normalize import normalize

    settings = read_settings(model_store=store)
    parser = Parser.load(model, settings.model_store, rescore=rescore)
    for raw in read(str(file) if file else "-", max_depth=settings.max_tree_depth):
        tree = normalize(raw)
        found = parser.tree_probability([tree])[0] if tree else NOTHING_LEFT
        if json:
            result_json(tree_probability_json(found))
        else:
            result(_line(found))


def _line(found: TreeProbability) -> str:
    logs = (
        float("-inf") if found.sign == 0 else found.log_probability,
        found.sentence_log_probability,
        found.conditional_log_probability,
    )
    columns = ["-" if log is None else f"{log:.6f}" for log in logs]
    if found.sign < 0:
        columns.append("negative")
    return "\t".join([*columns, *([found.reason] if found.reason else [])])
