"""`lpcfg words`: eigenwords, vectors of words learned from raw text."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from lpcfg.api.stores import chosen
from lpcfg.cli.options import Json, Workers
from lpcfg.cli.terminal import answer, check_output, progress, result, result_json, result_table

app = typer.Typer(
    help="Learn vectors of words from raw text by canonical correlation, and use them.",
    epilog="Example: lpcfg words near words.safetensors kinase",
    no_args_is_help=True,
)

Vectors = Annotated[
    Path,
    typer.Argument(
        metavar="VECTORS", help="A file written by `words train`, or any word2vec text, also .gz."
    ),
]


Method = Literal["one-step", "two-step", "lr-mvl"]


@app.command(
    epilog="Example: lpcfg words train text.txt.gz --treebank trees.mrg --output words.safetensors"
)
def train(
    output: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="File to write: .safetensors; with any other ending, word2vec's text.",
        ),
    ],
    texts: Annotated[
        list[Path] | None,
        typer.Argument(metavar="TEXT", help="Files of raw text, UTF-8, also .gz."),
    ] = None,
    treebank: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Trees whose words are read too, and have vectors however rare they are.",
        ),
    ] = None,
    words: Annotated[int, typer.Option(min=1, help="Number of words with vectors.")] = 100_000,
    dimensions: Annotated[int, typer.Option(min=1, help="Length of a vector.")] = 100,
    method: Annotated[
        Method, typer.Option(help="How vectors are learned: see docs/words.md.")
    ] = "one-step",
    counts: Annotated[
        Literal["roots", "raw"], typer.Option(help="Square roots of counts, or counts as they are.")
    ] = "roots",
    rate: Annotated[
        list[float] | None,
        typer.Option(
            help="Rate of LR-MVL's exponential smooths, in (0, 1]; may be given several times."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0,
    threads: Workers = None,
    json: Json = False,
) -> None:
    """Learn eigenwords from raw text and treebanks and write them to a file."""
    if not texts and not treebank:
        raise typer.BadParameter("expected TEXT or --treebank, got neither: name a file")
    if rate and method != "lr-mvl":
        raise typer.BadParameter(
            f"expected --rate with --method lr-mvl alone, got it with {method}: leave it out"
        )
    from lpcfg.words.cca import EigenwordOptions, learn
    from lpcfg.words.corpus import treebank_sentences
    from lpcfg.words.files import save

    options = EigenwordOptions(
        words=words,
        dimensions=dimensions,
        method=method,
        square_roots=counts == "roots",
        rates=tuple(rate) if rate else EigenwordOptions.rates,
        seed=seed,
        threads=chosen(None, threads).threads,
    )
    check_output(output)  # fails before the work instead of after it
    sentences = list(treebank_sentences(treebank or ()))
    kept = {word for sentence in sentences for word in sentence}
    with progress() as show:
        found = learn(sentences, texts or (), options, keep=kept, on_progress=show)
    save(found, output)
    facts = {"words": len(found.words), "dimensions": found.dimensions, "method": method}
    text = f"{output}: {len(found.words)} words, {found.dimensions} dimensions"
    answer({"path": str(output), **facts}, text, json=json)


@app.command(epilog="Example: lpcfg words near words.safetensors kinase quickly --count 5")
def near(
    vectors: Vectors,
    word: Annotated[list[str], typer.Argument(metavar="WORD", help="Words to find others near.")],
    count: Annotated[int, typer.Option(min=1, help="How many words to print for each.")] = 10,
    json: Json = False,
) -> None:
    """Print the words nearest to each WORD, with their cosines."""
    from lpcfg.words.files import load

    words = load(vectors)
    for one in word:
        found = words.near(one, count)
        if json:
            result_json({"word": one, "near": [{"word": w, "cosine": c} for w, c in found]})
        else:
            result_table((one, other, f"{cosine:.3f}") for other, cosine in found)


@app.command(
    "vectors",
    epilog="Example: echo 'Dogs bark .' | lpcfg words vectors words.safetensors --context",
)
def vectors_of_tokens(
    vectors: Vectors,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="A sentence of tokens a line; standard input if left out."
        ),
    ] = None,
    context: Annotated[
        bool, typer.Option("--context", help="Add the projections of left and right context.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the vector of each token, a line each, and an empty line behind each sentence.

    A token without a vector has zeros. With --json there is one object a sentence.
    """
    from lpcfg.text.files import lines
    from lpcfg.words.files import load

    words = load(vectors)
    for line in lines(file):
        tokens = line.split()
        rows = (words.token_vectors(tokens) if context else words.matrix(tokens)).tolist()
        if json:
            result_json({"tokens": tokens, "vectors": rows})
            continue
        for token, row in zip(tokens, rows, strict=True):
            result(" ".join([token, *(f"{value:.6g}" for value in row)]))
        result("")


@app.command(epilog="Example: lpcfg words classes words.safetensors --classes 64 > classes.txt")
def classes(
    vectors: Vectors,
    count: Annotated[int, typer.Option("--classes", min=1, help="How many classes.")] = 64,
    seed: Annotated[int, typer.Option(min=0, help="Seed of k-means.")] = 0,
    json: Json = False,
) -> None:
    """Print every word, a tab and the number of its class, the frequent words first."""
    from lpcfg.words.classes import word_classes
    from lpcfg.words.files import load

    words = load(vectors)
    found = word_classes(words, count, seed=seed).tolist()
    if json:
        result_json(dict(zip(words.words, found, strict=True)))
        return
    for word, number in zip(words.words, found, strict=True):
        result(f"{word}\t{number}")
