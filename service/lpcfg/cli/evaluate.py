"""`lpcfg evaluate`: a model held against gold trees."""

from typing import Annotated

import typer

from lpcfg.cli.options import (
    Json,
    Maximise,
    Model,
    Objective,
    Store,
    StyleRules,
    Tags,
    Treebanks,
    style_rules,
    wrong_usage,
)
from lpcfg.cli.terminal import progress, result, result_json
from lpcfg.errors import InputError
from lpcfg.settings import read_settings


def evaluate(
    model: Model,
    treebanks: Treebanks,
    tags: Annotated[Tags, typer.Option(help="Whose part-of-speech tags the parser uses.")] = (
        Tags.PREDICTED
    ),
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Leave out sentences of more tokens.")
    ] = None,
    objective: Maximise = Objective.MAX_RULE,
    style: StyleRules = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Hold a model against gold trees: labelled precision, recall and F1, calibration, speed.

    F1 is strict: gold tags say what punctuation is, and every sentence counts.

    What EVALB itself would print is shown beside it.
    """
    from lpcfg.evaluation.run import measure
    from lpcfg.parsing.parser import Parser
    from lpcfg.trees.style import Style, read_normalized

    with wrong_usage("--style"):
        rules = Style.of(style_rules(style) or ())
    settings = read_settings(model_store=store)
    parser = Parser.load(model, settings.model_store)
    trees = list(read_normalized(treebanks, rules))
    gold = [tree for tree in trees if max_length is None or len(tree.leaves()) <= max_length]
    if not gold:
        raise InputError(
            f"expected trees of at most {max_length} tokens, got longer ones only, {len(trees)}: "
            "raise --max-length"
            if trees
            else f"expected trees with words in {', '.join(treebanks)}, got none: check the files"
        )
    with progress() as show:
        measured = measure(
            parser,
            gold,
            tags=tags.value,
            objective=objective.value,
            workers=settings.threads,
            progress=show,
        )
    if json:
        result_json({"model": str(parser.reference), **measured.as_dict()})
    else:
        result(f"{parser.reference}\n\n{measured.text()}")
