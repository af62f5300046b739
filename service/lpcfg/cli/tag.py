"""`lpcfg tag`: learn, apply and evaluate taggers with latent states."""

from enum import StrEnum
from typing import Annotated

import typer

from lpcfg.api.stores import chosen_store
from lpcfg.cli.options import Json, Model, Store
from lpcfg.cli.sentences import sentences
from lpcfg.cli.terminal import note, result, result_json
from lpcfg.predict.forms import Form

app = typer.Typer()


class Input(StrEnum):
    """How sentences are given."""

    TEXT = "text"
    LINES = "lines"
    TOKENS = "tokens"


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
        (found,) = tagger.predict([given])
        result_json(tagged_json(found)) if json else result(str(found))
