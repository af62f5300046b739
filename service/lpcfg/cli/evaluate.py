"""`lpcfg evaluate`: compare a model with gold trees."""

from typing import TYPE_CHECKING, Annotated

import typer

from lpcfg.base.errors import InputError
from lpcfg.cli.options import (
    Json,
    Maximise,
    Model,
    Rescore,
    Store,
    StyleRules,
    Tags,
    style_rules,
    wrong_usage,
)
from lpcfg.cli.terminal import progress, result, result_json

if TYPE_CHECKING:
    from lpcfg.kinds.constituency.predict import Parser


def evaluate(
    model: Model,
    treebanks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TREEBANK]...",
            help="Files and folders of Penn brackets, also .gz; `-` is standard input.",
        ),
    ] = None,
    tags: Annotated[
        Tags, typer.Option(help="Use the parser's own part-of-speech tags, or the gold ones.")
    ] = (Tags.PREDICTED),
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Leave out sentences of more tokens.")
    ] = None,
    objective: Maximise = None,
    style: StyleRules = None,
    suite: Annotated[
        bool,
        typer.Option(
            "--suite",
            help="Parse short sentences by kind of error instead: the package's own, or those of "
            "the files given (see kinds/constituency/suite.py for how they are written).",
        ),
    ] = False,
    rescore: Rescore = True,
    store: Store = None,
    json: Json = False,
) -> None:
    """Compare a model with gold trees: labelled precision, recall and F1, calibration, speed.

    F1 is strict: gold tags say what punctuation is, and every sentence counts.

    The figures of EVALB are shown beside it.
    """
    from lpcfg.kinds.constituency.evaluate import evaluate_parser
    from lpcfg.kinds.constituency.options import ParseOptions
    from lpcfg.kinds.constituency.predict import Parser
    from lpcfg.settings import read_settings
    from lpcfg.trees.style import Style, read_normalized

    with wrong_usage("--style"):
        rules = Style.of(style_rules(style) or ())
    settings = read_settings(model_store=store)
    if suite:
        _evaluate_suite(Parser.load(model, settings.model_store), treebanks or [], json)
        return
    if not treebanks:
        raise typer.BadParameter("name at least one, or add --suite", param_hint="TREEBANK")
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
        found = evaluate_parser(
            parser,
            gold,
            tags=tags.value,
            options=ParseOptions(objective=objective, rescore=rescore),
            workers=settings.threads,
            progress=show,
        )
    if json:
        result_json({"model": str(parser.reference), **found.as_json()})
    else:
        result(f"{parser.reference}\n\n{found.text()}")


def _evaluate_suite(parser: "Parser", sources: list[str], json: bool) -> None:
    from lpcfg.kinds.constituency.suite import default_suite, read_suite, run_suite
    from lpcfg.text.files import texts

    cases = [
        case
        for source in sources
        for name, text in texts(source)
        for case in read_suite(text, name)
    ]
    scores = run_suite(parser, cases if sources else default_suite())
    if json:
        result_json({"model": str(parser.reference), **scores.as_dict()})
    else:
        result(f"{parser.reference}\n\n{scores.text()}")
