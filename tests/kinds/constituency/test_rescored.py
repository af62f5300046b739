"""Tags, constraints, the fallback grammar, pieces and deadlines, through a rescoring layer."""

from dataclasses import replace
from functools import cache

import pytest

from lpcfg.base.cancel import Stop
from lpcfg.base.errors import DeadlineError
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.options import ParseOptions
from lpcfg.kinds.constituency.predict import FRAGMENT, Parser
from lpcfg.kinds.constituency.results import Analysis
from lpcfg.kinds.sentences import Constraint, Sentence
from lpcfg.trees.brackets import write
from tests import small_models
from tests.small_layers import random_layer

WORDS = ("The", "dog", "saw", "the", "cat", ".")


@cache
def parser() -> Parser:
    """Build a small model under a layer with random numbers."""
    model = small_models.spectral()
    return Parser(replace(model, rescoring=random_layer(model.grammar)))


def parse(asked: Sentence, **options: object) -> Analysis:
    (analysis,) = parser().predict([asked], ParseOptions(**options))  # type: ignore[arg-type]
    return analysis


def shares(analysis: Analysis) -> list[float]:
    """Return the probabilities of the parses, none of which is unknown."""
    found = [parse.probability for parse in analysis.parses]
    assert None not in found
    return [share for share in found if share is not None]


def test_tags_from_the_caller_are_kept_under_the_layer() -> None:
    tags = ("DT", "NN", None, "DT", "JJ", ".")
    analysis = parse(Sentence(WORDS, tags=tags), k=20)
    for told in analysis.parses:
        found = [leaf.label for leaf in told.tree.leaves()]
        assert [tag for given, tag in zip(tags, found, strict=True) if given] == [
            tag for tag in tags if tag
        ]
    assert 0 < sum(shares(analysis)) <= 1 + 1e-9


@pytest.mark.parametrize("span", [(0, 2), (3, 5), (2, 5)])
def test_constraints_hold_in_every_rescored_parse(span: tuple[int, int]) -> None:
    analysis = parse(Sentence(WORDS, constraints=(Constraint(*span),)), k=5)
    assert analysis.status == "parsed"
    for told in analysis.parses:
        assert span in {(one.start, one.end) for one in told.constituents}


def test_the_map_of_the_kind_of_text_goes_before_the_common_one() -> None:
    model, kind = parser().model, "letters"  # as random weights guess
    (raw,) = parser().predict([Sentence(WORDS)])
    quarter, half = (MonotoneMap((0, 1), (0, share)) for share in (0.25, 0.5))

    def served(**maps: object) -> float:
        parser = Parser(replace(model, **maps))  # type: ignore[arg-type]
        (found,) = parser.predict([Sentence(WORDS)])
        return found.parses[0].constituents[0].probability

    top = raw.parses[0].constituents[0].probability
    assert served(rescored_calibration=half) == pytest.approx(top / 2)
    both = {"rescored_calibration": half, "kind_calibrations": {kind: quarter}}
    assert served(**both) == pytest.approx(top / 4)
    assert served(**both | {"kind_calibrations": {"another": quarter}}) == pytest.approx(top / 2)


def test_the_default_objective_depends_on_who_decides() -> None:
    asked = Sentence(WORDS)
    spans, rules = "max-spans", "max-rule"
    for rescore, wanted, other in ((True, spans, rules), (False, rules, spans)):
        scores = {
            objective: parse(asked, objective=objective, rescore=rescore).parses[0].score
            for objective in (None, wanted, other)
        }
        assert scores[None] == scores[wanted] != scores[other]


def test_the_layer_decides_over_the_fallback_grammar_as_well() -> None:
    asked = Sentence(("w",) * 4, tags=("DT", "NN", "NNS", "NN"))
    alone = replace(parser().model, fallback=None)
    assert next(Parser(alone).predict([asked])).status == "partial"
    rescored, plain = parse(asked, k=50), parse(asked, k=50, rescore=False)
    assert rescored.status == plain.status == "parsed"
    assert sum(shares(rescored)) == pytest.approx(1.0)  # of all its derivations
    assert shares(rescored)[0] != pytest.approx(shares(plain)[0])
    assert rescored.log_probability == plain.log_probability


def test_pieces_side_by_side_are_those_without_the_layer() -> None:
    asked = Sentence(("w", "w", "w"), tags=(".", ".", "."))
    rescored, plain = parse(asked), parse(asked, rescore=False)
    assert rescored == plain
    assert write(rescored.parses[0].tree) == f"({FRAGMENT} (. w) (. w) (. w))"


def test_rescoring_stops_at_its_deadline() -> None:
    with pytest.raises(DeadlineError):
        list(parser().predict([Sentence(WORDS)] * 10_000, stop=Stop.after(0.1)))
    with pytest.raises(DeadlineError):
        parser().marginals(Sentence(WORDS), stop=Stop.after(0.0))
