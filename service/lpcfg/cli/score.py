"""`lpcfg score`: how probable trees are."""

from pathlib import Path
from typing import Annotated

import typer

from lpcfg.cli.options import Json, Model, Store
from lpcfg.cli.terminal import result, result_json
from lpcfg.parsing.results import TreeScore
from lpcfg.settings import read_settings

NOTHING_LEFT = TreeScore(None, 0, None, None, "nothing is left of the tree without its traces")


def score(
    model: Model,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Penn brackets, also .gz; standard input where it is left out."
        ),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print log p(tree), log p(sentence) and log p(tree | sentence) of every tree, or why not.

    What does not apply is `-`; the log of a tree of probability zero is `-inf`.
    """
    from lpcfg.parsing.parser import Parser
    from lpcfg.parsing.to_json import score_json
    from lpcfg.trees.brackets import read
    from lpcfg.trees.normalize import normalize

    settings = read_settings(model_store=store)
    parser = Parser.load(model, settings.model_store)
    for raw in read(str(file) if file else "-", max_depth=settings.max_tree_depth):
        tree = normalize(raw)
        scored = parser.score([tree])[0] if tree else NOTHING_LEFT
        if json:
            result_json(score_json(scored))
        else:
            result(_line(scored))


def _line(scored: TreeScore) -> str:
    logs = (
        float("-inf") if scored.sign == 0 else scored.log_probability,
        scored.sentence_log_probability,
        scored.conditional_log_probability,
    )
    columns = ["-" if log is None else f"{log:.6f}" for log in logs]
    if scored.sign < 0:
        columns.append("negative")
    return "\t".join([*columns, *([scored.reason] if scored.reason else [])])
