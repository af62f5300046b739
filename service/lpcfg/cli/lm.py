"""`lpcfg lm`: bigram language models with latent classes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from lpcfg.cli.options import Json
from lpcfg.cli.terminal import answer, check_output, progress

app = typer.Typer(
    help="Train and evaluate bigram language models with latent classes.",
    epilog="Example: lpcfg lm evaluate brown.npz test.txt",
    no_args_is_help=True,
)

Text = Annotated[
    Path,
    typer.Argument(
        metavar="TEXT", help="File with one sentence a line, blanks between tokens; also .gz."
    ),
]


Estimator = Literal["em", "pivot", "pivot+em"]


@app.command(
    epilog="Example: lpcfg lm train train.txt --dev dev.txt --output brown.npz --states 64"
)
def train(
    text: Text,
    dev: Annotated[
        Path, typer.Option(metavar="TEXT", help="Development text, by which training stops.")
    ],
    output: Annotated[Path, typer.Option(metavar="FILE.npz", help="File to write the model to.")],
    estimator: Annotated[
        Estimator, typer.Option(help="Estimator: see docs/language_model.md.")
    ] = "pivot+em",
    states: Annotated[
        int, typer.Option(metavar="M", min=1, help="Number of latent classes.")
    ] = 256,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0,
    min_count: Annotated[
        int, typer.Option(min=1, help="Words seen less often become one unknown word.")
    ] = 2,
    json: Json = False,
) -> None:
    """Learn p(w2 | w1) = Σ r(h | w1) s(w2 | h) and write it to a file."""
    from lpcfg.lm.corpus import read_sentences
    from lpcfg.lm.estimate import EstimationOptions, Step, train_lm

    options = EstimationOptions(estimator, states=states, seed=seed, min_count=min_count)
    check_output(output)  # fails before the work instead of after it
    with progress() as show:

        def on_step(step: Step) -> None:
            what = "EM over r and s" if step.words_too else "EM over r"
            show(what, step.number, options.max_steps)

        model = train_lm(read_sentences(text), read_sentences(dev), options, on_step=on_step)
    model.save(output)
    facts = model.training.model_dump()
    words = len(model.vocabulary.words)
    told = (
        f"{output}: {words} words, {facts['states']} states\n"
        f"perplexity on dev {facts['dev_perplexity']:.2f} after {facts['steps']} EM steps"
    )
    answer({"path": str(output), "words": words, **facts}, told, json=json)


@app.command(epilog="Example: lpcfg lm evaluate brown.npz test.txt --json")
def evaluate(
    model: Annotated[
        Path, typer.Argument(metavar="FILE.npz", help="A file written by `lm train`.")
    ],
    text: Text,
    json: Json = False,
) -> None:
    """Print the perplexity of a text, over its known words."""
    from lpcfg.lm.corpus import read_sentences
    from lpcfg.lm.model import LanguageModel

    perplexity = LanguageModel.load(model).perplexity(read_sentences(text))
    answer({"perplexity": perplexity}, f"perplexity {perplexity:.2f}", json=json)
