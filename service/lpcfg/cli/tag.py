"""`lpcfg tag`: learn, apply and evaluate taggers with latent states."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lpcfg.api.stores import chosen_store
from lpcfg.base.errors import InputError
from lpcfg.cli.options import Dev, Json, Model, Name, Store, Treebanks
from lpcfg.cli.sentences import sentences
from lpcfg.cli.terminal import note, progress, result, result_json, result_table
from lpcfg.cli.train import Estimator
from lpcfg.predict.forms import Form

if TYPE_CHECKING:
    from lpcfg.kinds.tags.evaluate import TagScores

app = typer.Typer(
    help="Learn taggers from treebanks, and use them.",
    epilog="Example: lpcfg tag train trees.mrg --name tags",
    no_args_is_help=True,
)


class Input(StrEnum):
    """How sentences are given."""

    TEXT = "text"
    LINES = "lines"
    TOKENS = "tokens"


@app.command(epilog="Example: lpcfg tag train train.mrg --name tags --dev dev.mrg")
def train(
    treebanks: Treebanks,
    name: Name,
    dev: Dev = None,
    estimator: Annotated[
        Estimator, typer.Option(help="How transitions are learned; counts: one state a tag.")
    ] = Estimator.PIVOT_EM,
    states: Annotated[
        int, typer.Option(metavar="M", min=1, help="Most latent states of a tag.")
    ] = 16,
    neighbours: Annotated[
        bool,
        typer.Option(
            "--neighbours/--no-neighbours",
            help="Also learn tags from the words on either side.",
        ),
    ] = True,
    language: Annotated[
        str, typer.Option(metavar="NAME", help="The treebank's language, for unknown words.")
    ] = "english",
    licence: Annotated[
        str, typer.Option(help="The treebank's licence, for the model's card.")
    ] = "not stated",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Number of threads.")] = 2,
    store: Store = None,
    json: Json = False,
) -> None:
    """Learn a tagger from the tags of trees, evaluate it, and publish it to the store.

    The model is a hidden Markov model whose tags have latent states. Every estimator of
    `lpcfg train` can learn it.
    """
    from lpcfg.kinds.tags import train as training

    chosen = training.estimator_of(
        estimator.value, **({} if estimator is Estimator.COUNTS else {"states": states})
    )
    gold = {file: training.read([file]) for file in dev or ()}
    with progress() as show:
        reference, facts, scores = training.train_and_publish(
            treebanks,
            training.Config(chosen, neighbours, language=language, seed=seed, workers=workers),
            store=chosen_store(store),
            name=name,
            dev=gold,
            licence=licence,
            progress=show,
        )
    if json:
        result_json({"name": reference.name, "version": reference.version, **facts})
        return
    result(f"{reference}: {facts['sentences']} sentences, {facts['words']} words")
    for file, one in scores.items():
        result(f"{file}: {one.accuracy:.2f} % of tags right")


@app.command(epilog="Example: echo 'The dog barked.' | lpcfg tag apply tags")
def apply(
    model: Model,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE", help="Files and folders, also .gz; standard input if left out."
        ),
    ] = None,
    form: Annotated[
        Input,
        typer.Option("--input", help="Raw text; a sentence of text, or of tokens, a line."),
    ] = Input.TEXT,
    store: Store = None,
    json: Json = False,
) -> None:
    """Print every sentence as word/TAG, a line each, in order; or a JSON object a line."""
    from lpcfg.kinds.tags.answer import tagged_json
    from lpcfg.kinds.tags.predict import SequenceTagger

    tagger = SequenceTagger.load(model, chosen_store(store))
    for read in sentences(files or [], Form(form.value)):
        given = read.sentence
        if not given.tokens:
            note(f"{read.source}: sentence {read.number}: failed: it has no words")
        found = tagger.tag(given) if given.tokens else None
        if json:
            result_json(tagged_json(given, found))
        else:
            tags = found.tags if found else ()
            result(" ".join(f"{w}/{t}" for w, t in zip(given.tokens, tags, strict=True)))


@app.command(epilog="Example: lpcfg tag evaluate tags dev.mrg")
def evaluate(model: Model, treebanks: Treebanks, store: Store = None, json: Json = False) -> None:
    """Tag the words of gold trees and compare: accuracy, unknown words, calibration, speed."""
    from lpcfg.kinds.tags import evaluate as evaluation
    from lpcfg.kinds.tags.chains import read
    from lpcfg.kinds.tags.predict import SequenceTagger

    tagger = SequenceTagger.load(model, chosen_store(store))
    gold = read(treebanks)
    if not gold:
        raise InputError(
            f"expected trees with words in {', '.join(treebanks)}, got none: check the files"
        )
    scores = evaluation.evaluate(tagger, gold)
    if json:
        result_json({"model": str(tagger.reference), **scores.as_json()})
    else:
        result_table(_rows(scores))


def _rows(scores: "TagScores") -> list[tuple[str, str]]:
    unknown = scores.unknown_accuracy
    return [
        ("sentences, words", f"{scores.sentences}, {scores.words}"),
        ("tags right", f"{scores.accuracy:.2f} %"),
        ("of unknown words", "-" if unknown is None else f"{unknown:.2f} %"),
        ("whole sentences right", f"{scores.exact_match:.2f} %"),
        ("calibration error", f"{scores.calibration_error:.4f}"),
        ("words a CPU second", f"{scores.words_per_cpu_second:.0f}"),
    ]
