"""Options that several commands share, worded once."""

from enum import StrEnum
from typing import Annotated

import typer


class Tags(StrEnum):
    """Whose tags a parser uses."""

    PREDICTED = "predicted"
    GOLD = "gold"


class Objective(StrEnum):
    """What the best tree maximises."""

    MAX_RULE = "max-rule"
    MAX_MARGINAL = "max-marginal"
    MAX_PRODUCT = "max-product"


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="NAME for its newest version, NAME@VERSION, or the path of a version's folder.",
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Model store, a folder or an fsspec URL; LPCFG_MODEL_STORE where it is not given.",
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
Maximise = Annotated[Objective, typer.Option(help="What the best tree maximises.")]
