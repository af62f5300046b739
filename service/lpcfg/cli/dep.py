"""`lpcfg dep`: learn, parse, weigh and evaluate dependency trees."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpcfg.api.stores import chosen_store
from lpcfg.cli.options import Json, Model, Store
from lpcfg.cli.sentences import sentences
from lpcfg.cli.terminal import note, result, result_json
from lpcfg.predict.forms import Form

if TYPE_CHECKING:
    from lpcfg.kinds.dependencies.conllu import Sentence
    from lpcfg.kinds.dependencies.predict import DependencyParser

app = typer.Typer()
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="CONLLU", help="Files and folders of CoNLL-U, also .gz; `-` is standard input."
    ),
]

Expansions = Annotated[
    list[str],
    typer.Argument(
        metavar="TREES", help="Files and folders of brackets, also .gz; `-` is standard input."
    ),
]


class Input(StrEnum):
    """The forms in which sentences are given."""

    TEXT = "text"
    TOKENS = "tokens"
    CONLLU = "conllu"


class Output(StrEnum):
    """The forms in which trees are printed."""

    CONLLU = "conllu"
    JSON = "json"


@app.command(epilog="Example: echo 'The dog barked.' | lpcfg dep parse en-dep --output json")
def parse(
    model: Model,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="File to read, also .gz; by default standard input."),
    ] = None,
    form: Annotated[
        Input,
        typer.Option("--input", help="Raw text; a sentence of tokens a line; or CoNLL-U."),
    ] = Input.TEXT,
    output: Annotated[Output, typer.Option(help="CoNLL-U, or a JSON object a line.")] = (
        Output.CONLLU
    ),
    store: Store = None,
    json: Json = False,
) -> None:
    """Print the dependency tree of every sentence, in order.

    CoNLL-U that is given keeps its comments and rows; heads, relations and tags are the model's.
    """
    from lpcfg.kinds.dependencies import conllu
    from lpcfg.kinds.dependencies.answer import parsed_json

    parser = _parser(model, store)
    if form is Input.CONLLU:
        for sentence in conllu.read(str(file) if file else "-"):
            [found] = parser.parse([[row[conllu.FORM] for row in sentence.words]])
            if json or output is Output.JSON:
                result_json(parsed_json(found))
            else:
                _print(sentence.with_arcs(found.arcs))
        return
    for read in sentences([str(file)] if file else [], Form(form.value)):
        given = read.sentence
        if not given.tokens:
            note(f"sentence {read.number}: failed: it has no words")
        [answer] = parser.predict([given])
        if json or output is Output.JSON:
            result_json(parsed_json(answer))
        elif given.tokens:
            _print(answer.conllu())


@app.command(
    "tree-probability", epilog="Example: lpcfg dep tree-probability en-dep trees.conllu --json"
)
def tree_probability(model: Model, files: Files, store: Store = None, json: Json = False) -> None:
    """Print log p(tree | sentence) of every tree, and log p(words | topology) by Algorithm 1.

    A tree that is not projective has probability zero given its sentence: `-inf`.
    """
    parser = _parser(model, store)
    for sentence in _gold(files):
        found = parser.tree_probability(sentence.arcs)
        if json:
            result_json({"id": sentence.name, **found})
            continue
        columns = [found["conditional_log_probability"], found["log_probability"]]
        shown = ["-inf" if log is None else f"{log:.6f}" for log in columns]
        if found["sign"] is None:
            shown[1] = "-"
        if found["sign"] == -1:
            shown.append("negative")
        result("\t".join([*shown, *([found["reason"]] if found["reason"] else [])]))


@app.command(epilog="Example: lpcfg dep expand train.conllu > train.mrg")
def expand(files: Files) -> None:
    """Print dependency trees as trees in brackets, from which `lpcfg train` learns an L-PCFG.

    Every head is expanded outward into binary nodes: `NN/L` has a modifier to the left, `NN/R` one
    to the right. Relations are left out. Trees that are not projective are lifted first; stderr
    says how many.
    """
    from lpcfg.kinds.dependencies import expansion
    from lpcfg.kinds.dependencies.arcs import projectivized
    from lpcfg.trees.brackets import write

    count = 0
    for sentence in _gold(files):
        arcs, lifted = projectivized(sentence.arcs)
        count += lifted > 0
        result(write(expansion.expand(arcs)))
    if count:
        note(f"trees that were not projective and have been lifted: {count}")


@app.command(epilog="Example: lpcfg parse mine text.txt | lpcfg dep collapse -")
def collapse(files: Expansions) -> None:
    """Turn trees that `lpcfg dep expand`, or a model learned from such trees, printed back into
    CoNLL-U.

    Relations are `dep`: the trees do not tell them. A tree of another form is left out; stderr says
    which.
    """
    from lpcfg.base.errors import InputError
    from lpcfg.kinds.dependencies import conllu, expansion
    from lpcfg.trees.brackets import read

    for number, tree in enumerate(read(files), start=1):
        try:
            arcs = expansion.collapse(tree)
        except InputError as error:
            note(f"tree {number}: {error}")
        else:
            _print(conllu.sentence_of(arcs))


def _parser(model: str, store: str | None) -> "DependencyParser":
    from lpcfg.kinds.dependencies.predict import DependencyParser

    return DependencyParser.load(model, chosen_store(store))


def _gold(files: list[str]) -> "Iterator[Sentence]":
    from lpcfg.kinds.dependencies import conllu

    yield from conllu.read(files)


def _print(sentence: "Sentence") -> None:
    from lpcfg.kinds.dependencies import conllu

    result(conllu.write([sentence]).removesuffix("\n"))
