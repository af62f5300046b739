"""A model that was just trained, with the report of its training."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from lpcfg.api.stores import chosen_store
from lpcfg.base.errors import InputError
from lpcfg.kinds.constituency.model import Model, to_bundle
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.store.versions import Reference, publish
from lpcfg.text.files import Source
from lpcfg.training.summary import TrainReport, card
from lpcfg.trees.brackets import write
from lpcfg.trees.tree import Tree


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedModel(Model):
    """A model that `lpcfg.train` returns: parse with it, look at its report, or save it.

    `report.text()` has sizes, scores on dev and what each stage took; `report.as_json()` is what
    the manifest of a saved model keeps.
    """

    report: TrainReport

    @classmethod
    def of(cls, model: Model, report: TrainReport) -> "TrainedModel":
        """Add a report to a model."""
        return cls(report=report, **{one.name: getattr(model, one.name) for one in fields(Model)})

    def parser(self) -> Parser:
        """Make a parser of the model."""
        return Parser(self)

    def save(self, name: str, *, store: str | Path | None = None) -> Reference:
        """Publish the model as the next version of a name, for `lpcfg.load` and every command.

        Numbers are stored in half precision unless the model was trained with exact=True, which
        changes probabilities in the fourth digit. The store is found as `lpcfg.load` finds it.

        >>> trees = [lpcfg.Tree.from_string("(S (NP (NNS Cats)) (VP (VBP sleep)))")] * 20
        >>> reference = lpcfg.train(trees, estimator="counts").save("cats", store=folder)
        >>> print(reference)
        cats@1
        >>> print(lpcfg.load("cats", store=folder).parse([["Cats", "sleep"]])[0])
        (S (NP (NNS Cats)) (VP (VBP sleep)))
        """
        bundle = to_bundle(
            self,
            facts=self.report.as_json(),
            card=card(name, self.report),
            exact=bool(self.report.configuration["exact"]),
        )
        return publish(chosen_store(store), name, bundle)


def sources_of(treebank: Source | Sequence[Source] | Sequence[Tree]) -> Source | Sequence[Source]:
    """Turn files, folders, streams or trees into sources that training can read."""
    if isinstance(treebank, str | Path) or hasattr(treebank, "read"):
        return treebank  # type: ignore[return-value]
    given = list(treebank) if isinstance(treebank, list | tuple) else None
    if given and all(isinstance(one, Tree) for one in given):
        return io.StringIO("\n".join(write(one) for one in given if isinstance(one, Tree)))
    if given and all(isinstance(one, str | Path) or hasattr(one, "read") for one in given):
        return [one for one in given if not isinstance(one, Tree)]
    raise InputError(
        "expected a treebank as the path of a file or folder, a list of those, or a list of "
        f"lpcfg.Tree, got {type(treebank).__name__}{'' if given else ' without either'}: give one "
        "of these"
    )
