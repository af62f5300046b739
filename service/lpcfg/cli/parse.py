"""`lpcfg parse`: parse sentences and print trees."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer

from lpcfg.api.stores import chosen_store
from lpcfg.cli.corpus import parse_into
from lpcfg.cli.options import Json, Maximise, Model, Rescore, Store
from lpcfg.cli.sentences import sentences
from lpcfg.cli.terminal import note, result, result_json
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.results import Analysis
from lpcfg.predict.forms import Form


class Output(StrEnum):
    """The forms in which trees are printed."""

    PTB = "ptb"
    JSON = "json"
    CONLLU = "conllu"
    SVG = "svg"
    LATEX = "latex"
    PARQUET = "parquet"


UNIVERSAL = frozenset(
    (
        *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON"),
        *("PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
    )
)
"""The tags of Universal Dependencies, which people mistake for a treebank's own."""
MOST_TAGS = 8  # of those that a message names


def parse(
    model: Model,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            help="Files, folders, patterns and URLs, also .gz and .zst; standard input where none "
            "is given.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        Form | None,
        typer.Option(
            "--input",
            help="Running text; a sentence a line: as text, tokens or word/TAG; or CoNLL-U. With "
            "--out also JSON lines with `id` and `text`, or Parquet, and the file's name decides.",
            show_default="text",
        ),
    ] = None,
    output: Annotated[
        Output | None,
        typer.Option(
            help="A tree a line in brackets (ptb), as a drawing (svg) or for the package forest "
            "(latex); all that is known, as JSON; CoNLL-U, its heads by head rules; or Parquet.",
            show_default="ptb, json with --out",
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="How many of the best trees to print.")] = 1,
    objective: Maximise = None,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Add the posteriors of all spans (with JSON).")
    ] = False,
    rescore: Rescore = True,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Parse a collection into this folder or URL, a file of trees for each input; what "
            "is done already is skipped: see docs/scale.md.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes with --out; by default one per core.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A dask.distributed scheduler whose workers parse, with --out: all must reach "
            "inputs, DIR and the model store under the same names.",
        ),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(
            metavar="TEXT[,ID]", help="The columns of Parquet input with texts and their ids."
        ),
    ] = "text",
    piece: Annotated[
        int,
        typer.Option(
            metavar="BYTES", min=1, help="With --out, longer files are cut into such pieces."
        ),
    ] = 1 << 18,
    mix: Annotated[
        bool,
        typer.Option("--mix", help="Add to a folder with trees of another model or options."),
    ] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Parse running text or sentences, and print a tree a line, in order, as soon as it is found.

    A sentence without a tree leaves its line empty, and stderr says why.

    With --k above 1 an empty line follows the trees of every sentence.
    """
    output = _output(output, json, Output.PTB if out is None else Output.JSON)
    if out is not None:
        if marginals or k > 1:
            raise typer.BadParameter("files hold one tree a sentence: omit --k and --marginals")
        parse_into(
            out,
            model,
            files or [],
            form=form,
            output=output.value,
            objective=objective,
            rescore=rescore,
            jobs=jobs,
            scheduler=scheduler,
            columns=columns,
            piece=piece,
            mix=mix,
            store=store,
            json=json,
        )
        return
    if Output.PARQUET is output or form in (Form.JSON, Form.PARQUET):
        raise typer.BadParameter("this form is for collections: name a folder", param_hint="--out")
    if jobs is not None or scheduler is not None:
        raise typer.BadParameter("one process prints: add --out DIR", param_hint="--jobs")
    if marginals and output is not Output.JSON:
        raise typer.BadParameter(
            "trees have no room for them: add --json", param_hint="--marginals"
        )
    from lpcfg.kinds.registry import load_model

    parser = load_model(model, chosen_store(store), only="constituency").predictor
    from lpcfg.kinds.constituency.answer import analysis_json, marginals_json

    options = ParseOptions(k=k, objective=objective, rescore=rescore)
    unknown: Counter[str] = Counter()
    for found in sentences(files or (), form or Form.TEXT):
        (analysis,) = parser.predict([found.sentence], options)
        tags = found.sentence.tags or ()
        unknown.update(tag for tag in tags if tag and tag not in parser.model.lexicon.tags)
        if analysis.status != "parsed":
            where = f" of {found.source}" if files else ""
            note(f"sentence {found.number}{where}: {analysis.status}: {analysis.reason}")
        if output is Output.JSON:
            shown = analysis_json(analysis)
            if marginals:
                shown["marginals"] = marginals_json(parser.marginals(found.sentence))
            result_json(shown)
        elif output is Output.CONLLU:
            _print_arcs(analysis)
        else:
            _print_trees(analysis, output, k)
    if unknown:
        note(_about_tags(unknown))


def _about_tags(unknown: Counter[str]) -> str:
    """Say once, for all sentences, which tags the model does not have."""
    first = [f"{tag} ({count})" for tag, count in unknown.most_common(MOST_TAGS)]
    more = ", …" if len(unknown) > MOST_TAGS else ""
    told = f"the model does not have {len(unknown)} of the tags given: {', '.join(first)}{more}: "
    if unknown.keys() <= UNIVERSAL:
        return told + "they are tags of Universal Dependencies: give the treebank's own, or none"
    return told + "words with them got tags of the model's own"


def _output(asked: Output | None, json: bool, default: Output) -> Output:
    if json and asked not in (None, Output.JSON):
        raise typer.BadParameter(f"--output {asked} says otherwise: omit one", param_hint="--json")
    return Output.JSON if json else asked or default


def _print_arcs(analysis: Analysis) -> None:
    """Print the arcs of each tree as CoNLL-U."""
    from lpcfg.predict.records import conllu_of

    for parse in analysis.parses:
        result(conllu_of(analysis, parse.tree).removesuffix("\n"))


def _print_trees(analysis: Analysis, output: Output, k: int) -> None:
    from lpcfg.trees.brackets import write
    from lpcfg.trees.draw import latex, svg

    show = {Output.PTB: write, Output.SVG: svg, Output.LATEX: latex}[output]
    trees: Iterable[str] = [show(parse.tree) for parse in analysis.parses] or [""]
    for tree in trees:
        result(tree)
    if k > 1:
        result("")
