"""The settings of learning the rescoring layer."""

from dataclasses import dataclass

from lpcfg.base.errors import TrainingError


@dataclass(frozen=True)
class RescoringSettings:
    """The keys of `[rescoring]`.

    folds         parts of the treebank; the charts of each are made by a model of the others
    trust         w₀, how much the tensors' posteriors count beside features
    bits          the sparse part has 2^bits weights
    passes        over the charts, for the sparse part
    width         of the hidden part; 0 leaves it out
    hidden_passes over the charts, for the hidden part
    dimensions    of words' vectors, where they are learned
    vocabulary    words with vectors: the most frequent of the treebank and the text
    domains       the kind of text of each treebank, in their order, "" for none; none by default
    unfamiliar    kinds of text that stand for those to come: models that each lack one parse its
                  trees, to know how sure a model may be on text unlike the treebanks'
    """

    folds: int = 5
    trust: float = 0.5
    bits: int = 22
    passes: int = 3
    width: int = 128
    hidden_passes: int = 4
    dimensions: int = 100
    vocabulary: int = 50_000
    domains: tuple[str, ...] = ()
    unfamiliar: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        least = {"folds": 2, "bits": 10, "passes": 1, "width": 0, "hidden_passes": 1}
        for name, smallest in {**least, "dimensions": 1, "vocabulary": 1}.items():
            if getattr(self, name) < smallest:
                raise TrainingError(
                    f"expected `{name}` of at least {smallest} in [rescoring], got "
                    f"{getattr(self, name)}: raise or omit it"
                )
        if not 0 <= self.trust <= 2 or self.bits > 26:
            raise TrainingError(
                "expected `trust` within [0, 2] and `bits` of at most 26 in [rescoring], got "
                f"{self.trust} and {self.bits}: correct them"
            )
        named = {name for name in self.domains if name}
        if self.unfamiliar and (len(named) < 2 or not named.issuperset(self.unfamiliar)):
            raise TrainingError(
                "expected names in `unfamiliar` that are among two or more in `domains`, got "
                f"{list(self.unfamiliar)} and {list(self.domains)}: correct them"
            )
