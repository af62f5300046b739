"""`lpcfg similarity`: learn and score how similar two sentences are."""

from pathlib import Path
from typing import Annotated

import typer

from lpcfg.cli.options import Json
from lpcfg.cli.terminal import answer, check_output, result_json, result_table

app = typer.Typer(
    help="Learn from people's scores how similar two sentences are, and score pairs.",
    epilog="Example: lpcfg similarity score similarity.safetensors pairs.txt",
    no_args_is_help=True,
)

Measure = Annotated[
    Path, typer.Argument(metavar="MEASURE", help="A file written by `similarity train`.")
]
Pairs = Annotated[
    list[Path],
    typer.Option(
        metavar="FILE",
        help="File with a pair a line, a tab between sentences; may be given several times.",
    ),
]
Scores = Annotated[
    list[Path],
    typer.Option(
        metavar="FILE", help="File with a number a line, one for each --pairs, in the same order."
    ),
]


@app.command(
    epilog="Example: lpcfg similarity train --pairs pairs.txt --scores scores.txt "
    "--words words.safetensors --output similarity.safetensors"
)
def train(
    pairs: Pairs,
    scores: Scores,
    output: Annotated[
        Path, typer.Option(metavar="FILE.safetensors", help="File to write the measure to.")
    ],
    words: Annotated[
        Path | None,
        typer.Option(
            metavar="VECTORS", help="Eigenwords; without them, only surface metrics are used."
        ),
    ] = None,
    highest: Annotated[
        float, typer.Option(min=0, help="Highest score of the scale, which begins at 0.")
    ] = 5.0,
    json: Json = False,
) -> None:
    """Learn a measure from pairs of sentences and people's scores and write it to a file."""
    from lpcfg.words.files import load
    from lpcfg.words.similarity import train_similarity

    sets = _sets(pairs, scores)
    check_output(output)
    measure = train_similarity(
        [pair for found, _ in sets for pair in found],
        [score for _, gold in sets for score in gold],
        load(words) if words else None,
        scale=(0.0, highest),
    )
    measure.save(output)
    count = sum(len(found) for found, _ in sets)
    facts = {"pairs": count, "features": measure.columns, "penalty": measure.ridge.penalty}
    text = f"{output}: {len(measure.columns)} features, {count} pairs"
    answer({"path": str(output), **facts}, text, json=json)


@app.command(epilog="Example: lpcfg similarity score similarity.safetensors pairs.txt --json")
def score(
    measure: Measure,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="File with a pair a line, a tab between; by default standard input.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print the score of each pair, a line each; with --json, also which words align."""
    from lpcfg.words.similarity import Similarity, comparison, read_pairs

    learned = Similarity.load(measure)
    for pair in read_pairs(file):
        found = comparison(learned, pair)
        answer(found, f"{found['score']:.3f}", json=json)


@app.command(
    epilog="Example: lpcfg similarity evaluate similarity.safetensors --pairs p.txt --scores s.txt"
)
def evaluate(measure: Measure, pairs: Pairs, scores: Scores, json: Json = False) -> None:
    """Print Pearson's correlation with people's scores: for each set, for all pairs, and the
    weighted mean.
    """
    from lpcfg.words.similarity import Similarity, correlations

    found = correlations(Similarity.load(measure), _sets(pairs, scores))
    names = [path.name for path in pairs]
    if json:
        sets = dict(zip(names, found.sets, strict=True))
        result_json({"sets": sets, "all": found.all, "mean": found.mean})
    else:
        rows = [*zip(names, found.sets, strict=True), ("ALL", found.all), ("mean", found.mean)]
        result_table((name, f"{value:.4f}") for name, value in rows)


def _sets(pairs: list[Path], scores: list[Path]) -> list[tuple[list[tuple[str, str]], list[float]]]:
    """Yield the pairs and scores of each set."""
    from lpcfg.words.similarity import read_scored_pairs

    if len(pairs) != len(scores):
        raise typer.BadParameter(
            f"expected as many --scores as --pairs, got {len(scores)} and {len(pairs)}"
        )
    return [read_scored_pairs(one, two) for one, two in zip(pairs, scores, strict=True)]
