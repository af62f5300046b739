"""Models: what is stored of them, what comes back, and what is refused."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import GrammarError, StoreError
from lpcfg.grammar.tables import Tables
from lpcfg.kinds.calibration_map import MonotoneMap
from lpcfg.kinds.constituency.model import (
    Model,
    coarse_tables,
    fallback_grammar,
    from_bundle,
    to_bundle,
)
from lpcfg.store.files import Bundle
from lpcfg.store.versions import load, publish
from tests import small_models
from tests.strategies_grammar import entry_name

HALF = 2.0**-12
"""The largest error of rounding a number of [-1, 1] to float16."""


def full() -> Model:
    """Return a model with everything that a model can have."""
    return replace(
        small_models.spectral(members=2),
        weights=(0.5, 1.0),
        calibration=MonotoneMap.from_lists([[0.0, 0.5, 1.0], [0.0, 0.25, 1.0]]),
    )


def bundle(model: Model, *, exact: bool) -> Bundle:
    return to_bundle(model, facts={"estimator": "spectral"}, card="# Small", exact=exact)


def same_numbers(mine: object, other: object) -> Iterator[tuple[str, bool]]:
    """Compare two records field by field, arrays bit for bit."""
    for field in fields(mine):  # type: ignore[arg-type]
        a, b = getattr(mine, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            yield field.name, a.dtype == b.dtype and a.tobytes() == b.tobytes()
        elif field.name != "grammar":
            yield field.name, a == b


def differing(mine: object, other: object) -> list[str]:
    return [name for name, same in same_numbers(mine, other) if not same]


def test_an_exact_bundle_gives_the_model_back_bit_for_bit() -> None:
    model = full()
    back = from_bundle(bundle(model, exact=True))
    assert differing(model.grammar, back.grammar) == []
    assert differing(model.lexicon, back.lexicon) == []
    assert differing(model.coarse, back.coarse) == []
    assert [differing(*pair) for pair in zip(model.members, back.members, strict=True)] == [[], []]
    assert model.fallback is not None
    assert back.fallback is not None
    assert differing(model.fallback.grammar, back.fallback.grammar) == []
    assert differing(model.fallback.coarse, back.fallback.coarse) == []
    assert back.weights == model.weights == (0.5, 1.0)
    assert model.calibration is not None
    assert back.calibration is not None
    assert back.calibration.as_lists() == model.calibration.as_lists()
    assert model.tagger is not None
    assert back.tagger is not None
    assert differing(model.tagger, back.tagger) == []
    assert back.horizontal == model.horizontal == 1
    assert back.states == model.states == 4


def test_context_tables_are_kept_in_float32() -> None:
    model = full()
    back = from_bundle(bundle(model, exact=True))
    for name in ("transition", "before", "after"):
        kept = getattr(back.context, name)
        assert kept.dtype == np.float64
        np.testing.assert_array_equal(kept, getattr(model.context, name).astype(np.float32))


def test_half_precision_changes_a_tensor_by_its_roundings_alone() -> None:
    """A term's sides over their largest numbers are rounded to float16: three errors of HALF.

    The product of the three largest numbers, and the sums and products on the way back, are in
    float32: another 2⁻²² of the same size covers them.
    """
    model = full()
    back = from_bundle(bundle(model, exact=False))
    for mine, kept in zip(model.members, back.members, strict=True):
        for r in range(model.grammar.n_rules):
            sizes = np.ones(int(mine.terms[r]))
            for side in mine.rule(r):
                sizes = sizes * np.abs(side).max(axis=1)
            allowed = (3 * HALF + 3 * HALF**2 + 2.0**-22) * sizes.sum()
            assert np.abs(mine.dense(r) - kept.dense(r)).max() <= allowed
        for e in range(len(model.grammar.entries)):
            vector = mine.terminal_vector(e)
            allowed = (HALF + 2.0**-22) * np.abs(vector).max()
            assert np.abs(vector - kept.terminal_vector(e)).max() <= allowed
        for name in ("states", "terms", "c_one"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(kept, name))


def test_storing_twice_in_half_precision_changes_nothing_more() -> None:
    once = from_bundle(bundle(full(), exact=False))
    twice = from_bundle(bundle(once, exact=False))
    assert [differing(*pair) for pair in zip(once.members, twice.members, strict=True)] == [[], []]
    halved = bundle(full(), exact=False).tensors
    for side in ("parent", "left", "right", "c_inf"):
        assert halved[f"members.0.{side}"].dtype == np.float16


def test_rows_of_zeros_and_rules_without_terms_survive_half_precision() -> None:
    model = small_models.spectral()
    (member,) = model.members
    silent = replace(
        member,
        terms=np.zeros_like(member.terms),
        parent=member.parent[:0],
        left=member.left[:0],
        right=member.right[:0],
        c_inf=np.zeros_like(member.c_inf),
    )
    back = from_bundle(bundle(replace(model, members=(silent,)), exact=False))
    assert not back.members[0].terms.any()
    assert not back.members[0].c_inf.any()
    assert len(back.members[0].parent) == 0


def test_a_model_is_published_and_loaded(tmp_path: Path) -> None:
    reference = publish(tmp_path, "small", bundle(full(), exact=True))
    back = from_bundle(load(str(reference), tmp_path))
    assert [differing(*pair) for pair in zip(full().members, back.members, strict=True)] == [[], []]
    assert back.grammar.symbols == full().grammar.symbols
    assert back.lexicon.words == full().lexicon.words


def test_members_are_made_anew_from_the_store_at_each_use(tmp_path: Path) -> None:
    reference = publish(tmp_path, "small", bundle(full(), exact=False))
    back = from_bundle(load(str(reference), tmp_path))
    first, again = back.members[0], back.members[0]
    assert first is not again
    assert differing(first, again) == []
    assert len(back.members[:1]) == 1
    assert back.states == max(member.states.max() for member in back.members)
    assert [weight for _, weight in back.weighted] == list(full().weights or (1.0,))


def test_a_model_of_counts_alone_has_no_members_and_one_state() -> None:
    model = replace(small_models.counts(), fallback=None, tagger=None)
    back = from_bundle(bundle(model, exact=False))
    assert back.members == ()
    assert back.states == 1
    assert back.fallback is None
    assert back.calibration is None
    assert back.tagger is None


OPTIONAL = {"fallback", "calibration", "tagger", "weights"}
NAMES = sorted(
    [("grammar", name) for name in bundle(full(), exact=False).grammar if name not in OPTIONAL]
    + [("tensors", name) for name in bundle(full(), exact=False).tensors]
)


@pytest.mark.parametrize(("part", "name"), NAMES)
def test_a_model_without_one_of_its_pieces_is_refused_by_name(part: str, name: str) -> None:
    whole = bundle(full(), exact=False)
    rest = {key: value for key, value in getattr(whole, part).items() if key != name}
    torn = replace(whole, **{part: rest})
    message = rf"`{name}`: expected .*, found none: publish the model again, or restore it"
    with pytest.raises(StoreError, match=message):
        from_bundle(torn)


def test_numbers_of_another_grammar_are_refused() -> None:
    whole = bundle(full(), exact=True)
    torn = {**whole.tensors, "members.1.left": whole.tensors["members.1.left"][:-1]}
    message = r"tensors.safetensors `members.1.left`: expected a tensor of F32 or F64 and \d+ numb"
    with pytest.raises(StoreError, match=message):
        from_bundle(replace(whole, tensors=torn))


def test_a_fallback_has_its_own_rules_over_the_same_preterminals_and_words() -> None:
    model = small_models.counts()
    assert model.fallback is not None
    own, other = model.grammar, model.fallback.grammar
    assert other.symbols[other.n_internal :] == own.symbols[own.n_internal :]
    assert [entry_name(other, e) for e in range(len(other.entries))] == [
        entry_name(own, e) for e in range(len(own.entries))
    ]
    made = fallback_grammar(own, ("S", "@S"), np.array([[0, 1, 2], [1, 2, 2]]))
    assert made.symbols[:2] == ("S", "@S")
    assert entry_name(made, 0) == entry_name(own, 0)


def test_coarse_tables_hold_rule_probabilities_and_leave_words_to_the_lexicon() -> None:
    grammar = small_models.counts().grammar
    q, root = np.linspace(0.1, 0.9, grammar.n_rules), np.ones(grammar.n_symbols)
    tables: Tables = coarse_tables(grammar, q, root)
    assert [tables.dense(r).item() for r in range(grammar.n_rules)] == q.tolist()
    assert (tables.c_inf == 1).all()
    assert (tables.states == 1).all()


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 0.0), (1.0, float("nan"))])
def test_every_member_has_a_weight_above_zero_or_none_has(weights: tuple[float, ...]) -> None:
    with pytest.raises(GrammarError, match="a weight above 0 for each of 2 members, got"):
        replace(full(), weights=weights)
