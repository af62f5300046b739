"""`lpcfg report`: draw a model as a page of plots."""

from pathlib import Path
from typing import Annotated

import typer

from lpcfg.api.stores import chosen
from lpcfg.cli.evaluate import evaluations
from lpcfg.cli.options import Command, Given, Json, Model, Store, flag_of, with_options
from lpcfg.cli.terminal import check_output, note, result, result_json
from lpcfg.kinds.registry import AnyKind


def command(*kinds: AnyKind) -> Command:
    """Make the command for models of these kinds."""

    @with_options(*(kind.evaluating for kind in kinds))
    def report(
        model: Model,
        treebank: Annotated[
            list[str] | None,
            typer.Option(
                metavar="FILE",
                help="Gold data to evaluate on now; may be given several times.",
            ),
        ] = None,
        output: Annotated[
            Path | None,
            typer.Option(
                "--output", "-o", metavar="FILE.html", help="File to write instead of stdout."
            ),
        ] = None,
        *,
        given: Given,
        store: Store = None,
        json: Json = False,
    ) -> None:
        """Draw a model: scores by length and label, calibration, singular values, sizes, training.

        The page is one HTML file that needs nothing else. Scores are those of the training's --dev
        data, or those on --treebank. With --json, print the content of the page as one object, in
        which `page` is the path of --output.
        """
        for name in [] if treebank else given:
            flag = flag_of(name)
            raise typer.BadParameter("there is nothing to parse: add --treebank", param_hint=flag)
        from lpcfg.base.files import atomic_write
        from lpcfg.kinds.registry import loaded
        from lpcfg.report.page import Evaluation, page, told
        from lpcfg.store.versions import load

        place = chosen(store)
        if output is not None:
            check_output(output)  # fails before the work instead of after it
        stored = load(model, place.store)
        evaluation = None
        if treebank:
            options, (found,) = evaluations([loaded(stored)], treebank, given, place.threads)
            title = ", ".join(Path(name).name for name in treebank)
            tags = f", {options.tags} tags" if hasattr(options, "tags") else ""
            evaluation = Evaluation(f"{title}{tags}", found.as_json())
        if output is not None:
            atomic_write(output, page(stored, evaluation).encode())
            note(f"{stored.reference} is drawn in {output}")
        if json:
            result_json({**told(stored, evaluation), "page": output and str(output)})
        elif output is None:
            result(page(stored, evaluation).rstrip("\n"))

    return report
