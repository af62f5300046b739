"""`lpcfg dep`: learn, parse, weigh and evaluate dependency trees."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from lpcfg.api.stores import chosen_store
from lpcfg.cli.options import Json, Model, Store
from lpcfg.cli.terminal import note, result, result_json

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
