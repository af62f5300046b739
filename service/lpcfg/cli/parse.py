"""`lpcfg parse`: sentences in, trees out."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lpcfg.cli.options import Json, Maximise, Model, Objective, Store
from lpcfg.cli.sentences import Form, sentences
from lpcfg.cli.terminal import note, result, result_json
from lpcfg.parsing.results import Analysis, Options
from lpcfg.settings import read_settings


class Output(StrEnum):
    """How trees are printed."""

    PTB = "ptb"
    JSON = "json"
    CONLLU = "conllu"
    SVG = "svg"


def parse(
    model: Model,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Also .gz; standard input where it is left out."),
    ] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--input", help="Raw text; one sentence of tokens a line; or the same, word/TAG."
        ),
    ] = Form.TEXT,
    output: Annotated[
        Output | None,
        typer.Option(
            help="One bracketed tree (ptb), JSON object or drawing (svg) a line; or CoNLL-U, "
            "its heads by head rules."
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="So many best trees of a sentence.")] = 1,
    objective: Maximise = Objective.MAX_RULE,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Add the posteriors of all spans (with JSON).")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Parse text, or one sentence of tokens a line; print a tree a line, in order.

    A sentence without a tree leaves its line empty, and stderr says why.

    With --k above 1 an empty line follows the trees of every sentence.
    """
    output = _output(output, json)
    if marginals and output is not Output.JSON:
        raise typer.BadParameter(
            "trees have no room for them: add --json", param_hint="--marginals"
        )
    from lpcfg.parsing.parser import Parser
    from lpcfg.parsing.to_json import analysis_json, marginals_json

    parser = Parser.load(model, read_settings(model_store=store).model_store)
    options = Options(k=k, objective=objective.value)
    for number, sentence in enumerate(sentences(file, form), start=1):
        (analysis,) = parser.analyse([sentence], options)
        for tag in dict.fromkeys(sentence.tags or ()):
            if tag not in parser.model.lexicon.tags:
                note(f"sentence {number}: the model has no tag `{tag}`: words get one of its own")
        if analysis.status != "parsed":
            note(f"sentence {number}: {analysis.status}: {analysis.reason}")
        if output is Output.JSON:
            shown = analysis_json(analysis)
            if marginals:
                shown["marginals"] = marginals_json(parser.marginals(sentence))
            result_json(shown)
        elif output is Output.CONLLU:
            _print_arcs(analysis)
        else:
            _print_trees(analysis, output, k)


def _output(asked: Output | None, json: bool) -> Output:
    if json and asked not in (None, Output.JSON):
        raise typer.BadParameter(f"--output {asked} says otherwise: omit one", param_hint="--json")
    return Output.JSON if json else asked or Output.PTB


def _print_arcs(analysis: Analysis) -> None:
    """Print the arcs of each tree as CoNLL-U."""
    from lpcfg.dependencies import conllu
    from lpcfg.dependencies.head_rules import NOTE, arcs_of

    for parse in analysis.parses:
        offsets = tuple((token.start or 0, token.end or 0) for token in analysis.tokens)
        known = all(token.end is not None for token in analysis.tokens)
        arcs = arcs_of(parse.tree, offsets if known else ())
        sentence = conllu.sentence_of(arcs, analysis.sentence.text, [NOTE])
        result(conllu.write([sentence]).removesuffix("\n"))


def _print_trees(analysis: Analysis, output: Output, k: int) -> None:
    from lpcfg.trees.brackets import write
    from lpcfg.trees.draw import svg

    show = write if output is Output.PTB else svg
    trees: Iterable[str] = [show(parse.tree) for parse in analysis.parses] or [""]
    for tree in trees:
        result(tree)
    if k > 1:
        result("")
