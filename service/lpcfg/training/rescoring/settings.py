"""The settings of learning the rescoring layer."""

from dataclasses import dataclass

from lpcfg.base.errors import TrainingError
from lpcfg.training.estimators.inputs import check_least


@dataclass(frozen=True)
class RescoringSettings:
    """The keys of `[rescoring]`.

    folds         parts of the treebank; the charts of each are made by a model of the others
    trust         w₀, the prior weight: how much the tensors' posteriors count beside features
    bits          the sparse part has 2^bits weights
    passes        over the charts, for the sparse part
    width         of the hidden part; 0 leaves it out
    hidden_passes over the charts, for the hidden part
    dimensions    of words' vectors, where they are learned
    vocabulary    words with vectors: the most frequent of the treebank and the text
    domains       the domain of each treebank, in their order, "" for none; none by default
    unfamiliar    leave-one-domain-out: for each of these domains, a model that has not seen it
                  parses its trees, to know how sure a model may be on text unlike the treebanks'
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
        check_least(self, folds=2, bits=10, passes=1, width=0, hidden_passes=1)
        check_least(self, dimensions=1, vocabulary=1)
        if not 0 <= self.trust <= 2 or self.bits > 26:
            raise TrainingError(
                "expected `trust` within [0, 2] and `bits` of at most 26 in [rescoring], got "
                f"{self.trust} and {self.bits}: omit them for {RescoringSettings().trust} and "
                f"{RescoringSettings().bits}"
            )
        named = {name for name in self.domains if name}
        if self.unfamiliar and (len(named) < 2 or not named.issuperset(self.unfamiliar)):
            raise TrainingError(
                "expected names in `unfamiliar` that are among two or more in `domains`, got "
                f"{list(self.unfamiliar)} and {list(self.domains)}: name them there or omit both"
            )
