"""`lpcfg train`: learn a model from treebanks and publish it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lpcfg.cli.options import (
    Dev,
    Json,
    Name,
    Store,
    StyleRules,
    Treebanks,
    style_rules,
    wrong_usage,
)
from lpcfg.cli.terminal import answer, note, progress, result, result_json

if TYPE_CHECKING:
    from lpcfg.settings import Settings

SHOWN = 20
"""Malformed trees that are named one by one."""


Estimator = Literal["counts", "spectral", "clustering", "clustering+em", "em", "pivot", "pivot+em"]
Switch = Literal["on", "none"]
"""Whether a part of the recipe is left out."""


def _is_on(switch: Switch | None) -> bool | None:
    return None if switch is None else switch == "on"


def train(
    treebanks: Treebanks,
    name: Name,
    dev: Dev = None,
    estimator: Annotated[
        Estimator | None,
        typer.Option(help="One estimator in place of an ensemble: see docs/training.md."),
    ] = None,
    states: Annotated[
        int | None, typer.Option(metavar="M", min=1, help="Most latent states of a symbol.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="File with all other settings: see docs/training.md."
        ),
    ] = None,
    store: Store = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the random numbers.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one per core.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="A dask.distributed scheduler whose workers learn from shards of the treebank.",
        ),
    ] = None,
    rare_threshold: Annotated[
        int | None,
        typer.Option(min=0, help="Words seen less often share a signature; 0 keeps all words."),
    ] = None,
    smoothing: Annotated[
        Switch | None, typer.Option(help="Back-off of estimates to lower moments.")
    ] = None,
    scaling: Annotated[
        Switch | None, typer.Option(help="Scaling of features by their frequency.")
    ] = None,
    cut: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Singular values below this share of the first are cut off."
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Language of the trees: english, spanish, german, french, or neutral (others).",
        ),
    ] = None,
    style: StyleRules = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Adapt this model to the trees, a few dozen to a few thousand, instead of "
            "learning from them alone.",
        ),
    ] = None,
    rescore: Annotated[
        Switch | None,
        typer.Option(help="Learn the rescoring layer over the members' charts, or leave it out."),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Raw text to learn words' vectors from; may be given several times.",
        ),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="A stored model to take words' vectors and a first hidden part from; `none`: "
            "vectors of the treebank's words.",
        ),
    ] = None,
    automatic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR",
            help="Learn from sure trees of `lpcfg parse --out DIR` too; may be repeated.",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            metavar="P", help="How probable every constituent of an --automatic tree must be."
        ),
    ] = 0.5,
    exact: Annotated[
        bool | None, typer.Option("--exact", help="Store numbers in full precision.")
    ] = None,
    skip_bad: Annotated[
        bool | None,
        typer.Option("--skip-bad", help="Leave malformed trees out, and say where they are."),
    ] = None,
    json: Json = False,
) -> None:
    """Learn a model from Penn brackets and publish it as the next version of NAME.

    Options override the configuration file.

    At the end, print the version, its sizes, its scores on --dev, and the cost of each stage.
    """
    if workers is not None and scheduler is not None:
        raise typer.BadParameter("expected --workers or --scheduler, got both: omit one of them")
    if text and words:
        raise typer.BadParameter("expected --text or --words, got both: omit one of them")
    from lpcfg.base.executors import Pool
    from lpcfg.settings import read_settings

    settings = read_settings(model_store=store, threads=workers)
    pool = Pool(settings.threads)
    if base is None:  # they import beside the imports below
        size = sum(os.path.getsize(one) for one in treebanks if os.path.isfile(one))
        pool.start(size, "lpcfg.training.pipeline")

    from lpcfg.store.versions import check_name, check_publishable
    from lpcfg.training.config import TrainingConfig, overridden, read_config
    from lpcfg.training.data.automatic import sure_trees
    from lpcfg.training.pipeline import train_and_publish
    from lpcfg.training.words import words_of

    options = {
        "estimator": estimator,
        "states": states,
        "seed": seed,
        "rare_threshold": rare_threshold,
        "smoothing": _is_on(smoothing),
        "scaling": _is_on(scaling),
        "cut": cut,
        "exact": exact,
        "style": style_rules(style),
        "rescoring": _is_on(rescore),
        "language": language,
        "skip_bad": skip_bad,
    }
    with wrong_usage("--name"):
        check_name(name)
    if base is not None:
        given = [key for key, value in options.items() if value is not None]
        others = {"config": config, "automatic": automatic}
        given += [key for key, value in others.items() if value]
        refused = sorted({*given} - {"seed", "style"})
        if refused or scheduler is not None:
            raise typer.BadParameter(
                f"expected no `{(refused or ['scheduler'])[0]}` beside it: the base's own holds",
                param_hint="--base",
            )
        _adapt(treebanks, base, name, dev or [], style, seed, settings, json)
        return
    from_file = read_config(config) if config else TrainingConfig()
    with wrong_usage():
        configuration = overridden(from_file, options)
    check_publishable(settings.model_store, name)
    stores = settings.model_store, read_settings().model_store
    vectors = words_of(configuration, stores, settings.model, texts=text or [], model=words)
    sure = sure_trees(automatic, confidence) if automatic else None
    with pool, progress() as show:
        reference, report = train_and_publish(
            treebanks,
            configuration,
            words=vectors,
            store=settings.model_store,
            name=name,
            dev=dev,
            pool=pool,
            scheduler=scheduler,
            automatic=sure,
            progress=show,
            note=note,
        )
    for told in _left_out(report.left_out):
        note(told)
    if report.warning is not None:
        note(report.warning)
    version = {"name": reference.name, "version": reference.version, "hash": reference.hash}
    told = f"{reference}  {reference.hash}\n\n{report.text()}"
    answer({**version, **report.as_json()}, told, json=json)


def _left_out(faults: Sequence[str]) -> Iterator[str]:
    """Yield lines about the trees that were left out: how many, and the first of them."""
    if faults:
        yield f"left out {len(faults):,} malformed {'tree' if len(faults) == 1 else 'trees'}:"
        yield from faults[:SHOWN]
    if len(faults) > SHOWN:
        yield f"… and {len(faults) - SHOWN:,} more: `treebank.left_out` of the facts lists all"


def _adapt(
    treebanks: list[str],
    base: str,
    name: str,
    dev: list[str],
    style: str | None,
    seed: int | None,
    settings: "Settings",
    json: bool,
) -> None:
    """Adapt a model, publish the result, and print its scores."""
    from lpcfg.training.adapt import adapt_and_publish
    from lpcfg.trees.style import Style

    rules = style_rules(style)
    with wrong_usage("--style"):
        wanted = None if rules is None else Style.of(rules)
    reference, facts = adapt_and_publish(
        treebanks,
        base,
        store=settings.model_store,
        name=name,
        style=wanted,
        dev=dev,
        seed=1 if seed is None else seed,
        workers=settings.threads,
    )
    if json:
        version = {"name": reference.name, "version": reference.version, "hash": reference.hash}
        result_json({**version, **facts})
        return
    own, scores = facts["adaptation"], facts["dev"]
    result(
        f"{reference}  {reference.hash}\n\n{facts['base']['model']} adapted to {own['trees']:,} "
        f"trees of {own['words']:,} words\nthe base lacks {own['rules_left_out']:,} of their "
        f"{own['rules']:,} rules, and symbols for {own['words_left_out']:,} words: left out"
    )
    if scores is not None:
        result(f"\ndev: strict F1 {scores['f1']:.2f}, tags right {scores['tag_accuracy']:.2f} %")
