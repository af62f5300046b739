"""`lpcfg tree-probability`: print the probabilities of given trees."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpcfg.cli.options import Json, Model, Store
from lpcfg.cli.terminal import answer

if TYPE_CHECKING:
    from lpcfg.kinds.constituency.results import TreeProbability
    from lpcfg.settings import Settings
    from lpcfg.trees.tree import Tree


def tree_probability(
    model: Model,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Penn brackets, also .gz; standard input if left out."),
    ] = None,
    rescore: Annotated[
        bool,
        typer.Option(
            "--rescore/--no-rescore", help="Let the rescoring layer decide, or the tensors alone."
        ),
    ] = True,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print log p(tree), log p(sentence) and log p(tree | sentence) of every tree, or why not.

    What does not apply is `-`; the log of a tree of probability zero is `-inf`. In place of a
    model, the file GRAMMAR.toml of a known grammar gives the true values for trees of its symbols,
    as `lpcfg sample` prints them.
    """
    from lpcfg.kinds.constituency.answer import tree_probability_json
    from lpcfg.settings import read_settings
    from lpcfg.trees.brackets import read

    settings = read_settings(model_store=store)
    trees = read(str(file) if file else "-", max_depth=settings.max_tree_depth)
    known = model.endswith(".toml")
    answers = _known(model, trees) if known else _learned(model, trees, rescore, settings)
    for found in answers:
        answer(tree_probability_json(found), _line(found), json=json)


def _learned(
    model: str, trees: "Iterator[Tree]", rescore: bool, settings: "Settings"
) -> "Iterator[TreeProbability]":
    from lpcfg.kinds.constituency.predict import Parser
    from lpcfg.kinds.constituency.results import TreeProbability
    from lpcfg.trees.normalize import normalize

    empty = TreeProbability(None, 0, None, None, "nothing is left of the tree without its traces")
    parser = Parser.load(model, settings.model_store)
    for raw in trees:
        tree = normalize(raw)
        yield parser.tree_probability([tree], rescore=rescore)[0] if tree else empty


def _known(grammar: str, trees: "Iterator[Tree]") -> "Iterator[TreeProbability]":
    from lpcfg.grammar.known import read_lpcfg
    from lpcfg.kinds.constituency.known import tree_probability

    tables = read_lpcfg(grammar)
    for tree in trees:
        yield tree_probability(tables, tree)


def _line(found: "TreeProbability") -> str:
    logs = (
        float("-inf") if found.sign == 0 else found.log_probability,
        found.sentence_log_probability,
        found.conditional_log_probability,
    )
    columns = ["-" if log is None else f"{log:.6f}" for log in logs]
    if found.sign < 0:
        columns.append("negative")
    return "\t".join([*columns, *([found.reason] if found.reason else [])])
