"""`lpcfg compare`: compare two models with the same gold trees."""

from typing import Annotated

import typer

from lpcfg.base.errors import InputError
from lpcfg.cli.options import Json, Maximise, Model, Store, Tags, Treebanks
from lpcfg.cli.terminal import progress, result, result_json


def compare(
    model: Model,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="The second model, named in the same way.")
    ],
    treebanks: Treebanks,
    tags: Annotated[
        Tags, typer.Option(help="Use the parsers' own part-of-speech tags, or the gold ones.")
    ] = (Tags.PREDICTED),
    objective: Maximise = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Compare two models on the same gold trees: scores side by side, and the gain in strict F1.

    The gain comes with an interval, which holds 95 % of its values when sentences are drawn anew.

    If the interval holds 0, the gain may be chance.
    """
    from lpcfg.kinds.comparison import compare as compared
    from lpcfg.kinds.constituency.evaluate import evaluate_parser
    from lpcfg.kinds.constituency.options import ParseOptions
    from lpcfg.kinds.constituency.predict import Parser
    from lpcfg.settings import read_settings
    from lpcfg.trees.style import read_normalized

    settings = read_settings(model_store=store)
    parsers = [Parser.load(one, settings.model_store) for one in (model, other)]
    gold = list(read_normalized(treebanks))
    if not gold:
        raise InputError(
            f"expected trees with words in {', '.join(treebanks)}, got none: check the files"
        )
    with progress() as show:
        first, second = (
            evaluate_parser(
                parser,
                gold,
                tags=tags.value,
                options=ParseOptions(objective=objective),
                workers=settings.threads,
                progress=show,
            )
            for parser in parsers
        )
    names = str(parsers[0].reference), str(parsers[1].reference)
    found = compared(names, first, second)
    if json:
        result_json(found.as_dict())
    else:
        result(found.text())
