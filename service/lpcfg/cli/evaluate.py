"""`lpcfg evaluate`: compare a model with gold data."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from lpcfg.api.stores import chosen
from lpcfg.cli.options import Command, Given, Json, Model, Store, options_of, with_options
from lpcfg.cli.terminal import answer, progress
from lpcfg.kinds.kind import Evaluation
from lpcfg.kinds.registry import AnyKind, AnyLoaded


def command(*kinds: AnyKind) -> Command:
    """Make the command for models of these kinds."""

    @with_options(*(kind.evaluating for kind in kinds))
    def evaluate(
        model: Model,
        files: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="FILE",
                help="Files and folders of gold data, in the form of the model's kind, also .gz; "
                "`-` is standard input.",
            ),
        ] = None,
        *,
        given: Given,
        store: Store = None,
        json: Json = False,
    ) -> None:
        """Compare a model with gold data: what is right, calibration, speed.

        F1 of trees is strict: gold tags say what punctuation is, and every sentence counts.

        The figures of EVALB are shown beside it.
        """
        from lpcfg.kinds.registry import load_model

        place = chosen(store)
        loaded = load_model(model, place.store, only=None if kinds[1:] else kinds[0].name)
        _, (found,) = evaluations([loaded], files or [], given, place.threads)
        value = {"model": str(loaded.reference), **found.as_json()}
        answer(value, f"{loaded.reference}\n\n{found.text()}", json=json)

    return evaluate


def evaluations(
    models: Sequence[AnyLoaded], files: Sequence[str], given: Given, workers: int
) -> tuple[Any, list[Evaluation]]:
    """Evaluate models of one kind on the same gold data, with the options given, which are
    returned too.
    """
    kind = models[0].kind
    options: Any = options_of(kind.evaluating, given, kind.title)
    if not files and not getattr(options, "suite", False):
        cure = ", or add --suite" if hasattr(options, "suite") else ""
        raise typer.BadParameter(f"name at least one{cure}", param_hint="FILE")
    gold = kind.gold(files, options)
    with progress() as show:
        return options, [
            kind.evaluate(one.predictor, gold, options, workers=workers, progress=show)
            for one in models
        ]
