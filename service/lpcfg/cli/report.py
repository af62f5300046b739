"""`lpcfg report`: draw a model as a page of plots."""

from pathlib import Path
from typing import Annotated

import typer

from lpcfg.base.errors import InputError
from lpcfg.cli.options import Json, Model, Store, Tags
from lpcfg.cli.terminal import check_output, note, progress, result, result_json


def report(
    model: Model,
    treebank: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Gold trees to evaluate on now; may be given several times.",
        ),
    ] = None,
    tags: Annotated[
        Tags | None,
        typer.Option(
            show_default="predicted",
            help="Part-of-speech tags for --treebank: the parser's own or gold.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.html", help="File to write instead of stdout."
        ),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Draw a model: scores by length and label, calibration, singular values, sizes, training.

    The page is one HTML file that needs nothing else. Scores are those of the training's --dev
    trees, or those on --treebank. With --json, print the content of the page as one object, in
    which `page` is the path of --output.
    """
    if tags is not None and not treebank:
        raise typer.BadParameter("there is nothing to parse: add --treebank", param_hint="--tags")
    from lpcfg.kinds.constituency.evaluate import evaluate_parser
    from lpcfg.kinds.constituency.model import KIND, from_bundle
    from lpcfg.kinds.constituency.predict import Parser
    from lpcfg.report.page import Evaluation, page, told
    from lpcfg.settings import read_settings
    from lpcfg.store.versions import load
    from lpcfg.text.files import write_whole
    from lpcfg.trees.style import read_normalized

    settings = read_settings(model_store=store)
    stored = load(model, settings.model_store)
    kind = stored.grammar.get("kind", KIND)
    if kind != KIND:
        raise InputError(
            "expected a model of constituents, as `lpcfg train` makes them, got "
            f"{stored.reference}, which is one of {kind}: see its scores with `lpcfg models show "
            f"{model} --card`"
        )
    if output is not None:
        check_output(output)  # fails before the work instead of after it
    evaluation = None
    if treebank:
        gold = list(read_normalized(treebank))
        if not gold:
            raise InputError(
                f"expected trees with words in {', '.join(treebank)}, got none: check the files"
            )
        used = tags or Tags.PREDICTED
        with progress() as show:
            found = evaluate_parser(
                Parser(from_bundle(stored)),
                gold,
                tags=used.value,
                workers=settings.threads,
                progress=show,
            )
        title = ", ".join(Path(name).name for name in treebank)
        evaluation = Evaluation(f"{title}, {used.value} tags", found.as_json())
    if output is not None:
        write_whole(output, page(stored, evaluation).encode())
        note(f"{stored.reference} is drawn in {output}")
    if json:
        result_json({**told(stored, evaluation), "page": output and str(output)})
    elif output is None:
        result(page(stored, evaluation).rstrip("\n"))
