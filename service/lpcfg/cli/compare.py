"""`lpcfg compare`: compare two models with the same gold data."""

from typing import Annotated

import typer

from lpcfg.api.stores import chosen
from lpcfg.base.errors import InputError
from lpcfg.cli.evaluate import evaluations
from lpcfg.cli.options import Command, Given, Gold, Json, Model, Store, with_options
from lpcfg.cli.terminal import answer
from lpcfg.kinds.registry import AnyKind


def command(*kinds: AnyKind) -> Command:
    """Make the command for models of these kinds."""

    @with_options(*(kind.evaluating for kind in kinds))
    def compare(
        model: Model,
        other: Annotated[
            str, typer.Argument(metavar="OTHER", help="The second model, named in the same way.")
        ],
        files: Gold,
        *,
        given: Given,
        store: Store = None,
        json: Json = False,
    ) -> None:
        """Compare two models on the same gold data: scores side by side, and the gain.

        The gain, in strict F1 for trees, comes with an interval, which holds 95 % of its values
        when sentences are drawn anew.

        If the interval holds 0, the gain may be chance.
        """
        from lpcfg.kinds.comparison import compare as compared
        from lpcfg.kinds.registry import load_model

        place = chosen(store)
        first, second = (load_model(one, place.store) for one in (model, other))
        if first.kind is not second.kind:
            raise InputError(
                f"expected two models of one kind, got {first.reference}, a {first.kind.title}, "
                f"and {second.reference}, a {second.kind.title}: name another model"
            )
        _, scores = evaluations([first, second], files, given, place.threads)
        found = compared((str(first.reference), str(second.reference)), *scores)
        answer(found.as_dict(), found.text(), json=json)

    return compare
