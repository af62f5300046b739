"""The pivot algorithm: it finds a known L-PCFG, and each of its steps does what it says."""

from dataclasses import replace
from itertools import pairwise, permutations, product
from pathlib import Path

import numpy as np
import pytest

from lpcfg.base.errors import TrainingError
from lpcfg.grammar.known import enumerate_trees, read_lpcfg
from lpcfg.grammar.tables import Doubles, Tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.features import SIMPLE_TEMPLATES, Features, NodeArrays
from lpcfg.training.data.treebank import forest_of
from lpcfg.training.estimators import pivot
from lpcfg.training.estimators.inputs import EstimatorInputs
from lpcfg.training.estimators.pivot import (
    PivotConfig,
    PivotEmConfig,
    decompose,
    joint_states,
    positive_terms,
)
from lpcfg.training.estimators.spectral import project
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import read_string
from lpcfg.trees.normalize import normalize
from tests.strategies_grammar import entry_name
from tests.training.literal import TINY, coded

SMALL = Path(__file__).resolve().parents[2] / "examples" / "small.mrg"
PARTS = ("parent", "left", "right", "c_inf", "c_one")
EXACT = PivotConfig(
    states=4,
    templates=SIMPLE_TEMPLATES,
    kappa=0.0,
    cut=0.01,
    smoothing=False,
    pivot_count=1,
    rule_steps=1000,
    terms=64,
)
"""No smoothing of anything, and terms for every number of a tensor."""
KNOWN = """
# X and A have two states each. Every state has a word, or a rule, and a rule above it that no
# other state has: X → A E and S → X B are state 0's of X, a0 and X → A E are state 0's of A.
[states]
S = 1
X = 2
A = 2
B = 1
C = 1
D = 1
E = 1
F = 1
G = 1

[root]
S = [1.0]

[rules]
"S -> X B" = [[[0.25], [0.0]]]
"S -> X C" = [[[0.0], [0.25]]]
"S -> X D" = [[[0.125], [0.375]]]
"X -> A E" = [[[0.5], [0.0]], [[0.0], [0.0]]]
"X -> A F" = [[[0.0], [0.0]], [[0.0], [0.5]]]
"X -> A G" = [[[0.25], [0.25]], [[0.125], [0.375]]]

[words.A]
a0 = [0.5, 0.0]
a1 = [0.0, 0.25]
a2 = [0.5, 0.75]

[words.B]
b = [1.0]
[words.C]
c = [1.0]
[words.D]
d = [1.0]
[words.E]
e = [1.0]
[words.F]
f = [1.0]
[words.G]
g = [1.0]
"""
DENOMINATOR = 8 * 8 * 4
SEVERAL = """
# X has three states. Its left child and its parent, the first template of either side, are the same
# for all of them. Only its right child and the words to its right tell them apart: X → A E and one
# word are state 0's alone, X → A F and two words state 1's, X → A G and three words state 2's.
[states]
S = 1
X = 3
A = 1
B = 1
C = 1
D = 1
E = 1
F = 1
G = 1
H = 1
K = 1
P = 1

[root]
S = [1.0]

[rules]
"S -> X B" = [[[0.125], [0.0], [0.0]]]
"S -> X C" = [[[0.0], [0.125], [0.0]]]
"S -> X D" = [[[0.0], [0.0], [0.25]]]
"S -> X K" = [[[0.125], [0.25], [0.125]]]
"X -> A E" = [[[0.5]], [[0.0]], [[0.0]]]
"X -> A F" = [[[0.0]], [[0.5]], [[0.0]]]
"X -> A G" = [[[0.0]], [[0.0]], [[0.25]]]
"X -> A H" = [[[0.5]], [[0.5]], [[0.75]]]
"C -> P P" = [[[1.0]]]
"D -> P C" = [[[1.0]]]
"K -> P D" = [[[1.0]]]

[words.A]
a = [1.0]
[words.B]
b = [1.0]
[words.E]
e = [1.0]
[words.F]
f = [1.0]
[words.G]
g = [1.0]
[words.H]
h = [1.0]
[words.P]
p = [1.0]
"""
TEMPLATES_OF_SEVERAL = (
    "inside:left",
    "inside:right",
    "word:identity",
    "outside:parent",
    "outside:right-words",
)


# Recovery -----------------------------------------------------------------------------------------


def written(folder: Path, text: str) -> Tables:
    path = folder / "pivots.toml"
    path.write_text(text, encoding="utf-8")
    return read_lpcfg(path)


def exactly(known: Tables, *, max_words: int, denominator: int) -> Examples:
    """Build a treebank in which every tree is as frequent as it is probable: its moments are
    exact.
    """
    trees = []
    for tree, p in enumerate_trees(known, max_words=max_words):
        times = p * denominator
        assert times == round(times)
        trees += [tree] * round(times)
    assert len(trees) == denominator
    return coded(forest_of(trees))


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return written(tmp_path_factory.mktemp("lpcfg"), KNOWN)


@pytest.fixture(scope="module")
def exact(known: Tables) -> Examples:
    return exactly(known, max_words=3, denominator=DENOMINATOR)


def named(tables: Tables, words: dict[tuple[str, str], float]) -> dict[str, Doubles]:
    """Return t, q and π by name; q is c∞ times count(a → x) / count(a)."""
    grammar = tables.grammar
    numbers = {grammar.rule_name(r): tables.dense(r) for r in range(grammar.n_rules)}
    for e, (a, x) in enumerate(grammar.entries.tolist()):
        weight = words.get((grammar.symbols[a], grammar.terminals[x]), 1.0)
        numbers[entry_name(grammar, e)] = weight * np.array(tables.terminal_vector(e), np.float64)
    for a, name in enumerate(grammar.symbols):
        numbers[name] = np.array(tables.root_vector(a), np.float64)
    return numbers


def permuted(numbers: dict[str, Doubles], order: dict[str, tuple[int, ...]]) -> dict[str, Doubles]:
    result = {}
    for name, array in numbers.items():
        symbols = name.replace(" →", "").split()[: array.ndim]  # words have no states
        axes = [
            order.get(symbol, tuple(range(n)))
            for symbol, n in zip(symbols, array.shape, strict=True)
        ]
        result[name] = array[np.ix_(*axes)]
    return result


def distances(known: Tables, exact: Examples, config: PivotConfig) -> list[float]:
    """Compute the largest error of any number for every order of states, the least first."""
    forest, grammar, node_entry = exact.forest, exact.grammar, exact.node_entry
    tables, _ = pivot.estimate(EstimatorInputs(exact, 1, 1), config)
    states = dict(zip(grammar.symbols, tables.states.tolist(), strict=True))
    assert states == dict(zip(known.grammar.symbols, known.states.tolist(), strict=True))
    seen = np.bincount(node_entry[forest.is_leaf])
    of = np.bincount(forest.symbol)[grammar.entries[:, 0]]
    share = {
        (grammar.symbols[a], grammar.terminals[x]): float(seen[e] / of[e])
        for e, (a, x) in enumerate(grammar.entries.tolist())
    }
    truth, learned = named(known, {}), named(tables, share)
    assert truth.keys() == learned.keys()
    several = [name for name, m in states.items() if m > 1]
    found = []
    for orders in product(*(permutations(range(states[name])) for name in several)):
        ordered = permuted(learned, dict(zip(several, orders, strict=True)))
        found.append(max(float(np.abs(ordered[name] - truth[name]).max()) for name in truth))
    return sorted(found)


def test_exact_moments_of_a_model_with_pivots_give_it_back(known: Tables, exact: Examples) -> None:
    best, second, *_ = distances(known, exact, EXACT)
    # Y and Z are in single precision, and 1000 steps of EM leave 1e-4 of what converges slowest.
    assert best < 1e-3 < second


def test_a_model_that_only_several_templates_tell_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The 50 steps that align states of a treebank leave an error of .012 here; 5000 leave 1e-7.
    monkeypatch.setattr(pivot, "ALIGNMENT_STEPS", 5000)
    monkeypatch.setattr(pivot, "SETTLED", 0.0)
    several = written(tmp_path, SEVERAL)
    config = replace(EXACT, templates=TEMPLATES_OF_SEVERAL, rule_steps=1000)
    best, second, *_ = distances(several, exactly(several, max_words=6, denominator=32), config)
    assert best < 1e-3 < second


@pytest.mark.parametrize("states", [2, 3, 8])
def test_no_symbol_gets_more_states_than_have_pivots(exact: Examples, states: int) -> None:
    config = PivotConfig(
        states=states, templates=SIMPLE_TEMPLATES, kappa=0.0, cut=0.01, pivot_count=1
    )
    tables, _ = pivot.estimate(EstimatorInputs(exact, 1, 1), config)
    assert tables.states.max() == 2
    rare = PivotConfig(templates=SIMPLE_TEMPLATES, pivot_count=DENOMINATOR + 1)
    assert pivot.estimate(EstimatorInputs(exact, 1, 1), rare)[0].states.max() == 1


# Symbols ------------------------------------------------------------------------------------------


def test_features_of_a_template_have_distributions_given_a_state(small: Examples) -> None:
    config = PivotConfig(states=6, pivot_count=3)
    projection, _ = project(EstimatorInputs(small, 1, 1), config)
    features = Features.of(NodeArrays(small), config.chosen(1))
    most = 0
    for a in range(features.n_symbols):
        nodes = features.nodes[features.start[a] : features.start[a + 1]]
        phi, psi = features.inside(a), features.outside(a)
        width = projection.states[a]
        found = decompose(
            phi, psi, projection.inside[nodes, :width], projection.outside[nodes, :width], 3
        )
        most = max(most, len(found.prior))
        assert found.prior.sum() == pytest.approx(1)
        np.testing.assert_allclose(found.posterior.sum(axis=1), 1, rtol=1e-9)
        for side, given in ((phi, found.inside), (psi, found.outside)):
            template = np.zeros(side.n_features, np.int64)
            template[side.feature] = np.arange(side.feature.shape[1])
            for t in range(side.feature.shape[1]):
                sums = given[template == t].sum(axis=0)
                # Nothing of a template may tell of a state.
                np.testing.assert_allclose(sums[sums > 0], 1, rtol=1e-9)
                assert sums.any()
            assert (given >= 0).all()
    assert most == 6


# Rules --------------------------------------------------------------------------------------------


def cross_entropy(t: Doubles, rows: list[Doubles]) -> float:
    return float(np.log(np.einsum("ijk,ni,nj,nk->n", t, *rows)).sum())


@pytest.mark.parametrize("seed", range(4))
def test_every_step_on_a_rules_states_raises_the_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [rng.gamma(0.5, size=(50, m)) for m in (3, 2, 4)]
    values = [cross_entropy(joint_states(rows, steps), rows) for steps in range(0, 40, 4)]
    assert (np.diff(values) > 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_known_states_of_a_rule_are_counted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = [rng.integers(0, m, 60) for m in (3, 2, 4)]
    rows = [np.eye(m)[h] for m, h in zip((3, 2, 4), states, strict=True)]
    counts = np.zeros((3, 2, 4))
    np.add.at(counts, tuple(states), 1 / 60)
    np.testing.assert_allclose(joint_states(rows, 1), counts, rtol=1e-12)


@pytest.mark.parametrize("n_terms", [1, 2, 5, 7])
def test_terms_keep_the_marginals_of_states_and_approach_the_tensor(n_terms: int) -> None:
    rng = np.random.default_rng(n_terms)
    t = rng.gamma(0.3, size=(4, 3, 5))
    t /= t.sum()
    divergences = []
    for sweeps in (1, 5, 25, 100):
        p, q, r = positive_terms(t, n_terms, sweeps, np.random.default_rng(0))
        mass = p.sum(axis=1)
        model = np.einsum("ti,tj,tk->ijk", p, q / mass[:, None], r / mass[:, None])
        for axes in ((1, 2), (0, 2), (0, 1)):
            np.testing.assert_allclose(model.sum(axis=axes), t.sum(axis=axes), rtol=1e-9)
        divergences.append(float((t * np.log(t / model)).sum()))
        assert (p >= 0).all()
        assert len(p) == n_terms
    assert all(b <= a + 1e-12 for a, b in pairwise(divergences))
    assert n_terms == 1 or divergences[-1] < divergences[0]


def test_as_many_terms_as_fibres_are_the_tensor() -> None:
    rng = np.random.default_rng(4)
    for shape in ((4, 3, 5), (1, 7, 1), (6, 2, 2)):
        t = rng.random(shape)
        t /= t.sum()
        p, q, r = positive_terms(t, 12, 0, rng)
        mass = p.sum(axis=1)[:, None]
        np.testing.assert_allclose(np.einsum("ti,tj,tk->ijk", p, q / mass, r / mass), t)


# The estimator ------------------------------------------------------------------------------------


def numbers(tables: Tables) -> list[bytes]:
    return [getattr(tables, part).tobytes() for part in PARTS]


@pytest.mark.parametrize("estimate", [pivot.estimate, pivot.estimate_em])
def test_the_number_of_workers_changes_no_byte(small: Examples, estimate: object) -> None:
    config = PivotEmConfig(states=4, pivot_count=3, steps=2)
    assert callable(estimate)
    runs = [numbers(estimate(EstimatorInputs(small, 1, n), config)[0]) for n in (1, 2, 3)]
    assert runs[1:] == runs[:1] * 2


def test_parameters_are_non_negative_and_sum_to_one(small: Examples) -> None:
    tables, _ = pivot.estimate(EstimatorInputs(small, 1, 1), PivotConfig(states=4, pivot_count=3))
    assert all((getattr(tables, part) >= 0).all() for part in PARTS)
    assert tables.states.max() == 4
    total = np.zeros(int(tables.root_offset[-1]))
    for r, (a, _, _) in enumerate(tables.grammar.rules.tolist()):
        own = slice(tables.root_offset[a], tables.root_offset[a + 1])
        total[own] += tables.dense(r).sum(axis=(1, 2))
    inner = tables.root_offset[tables.grammar.n_internal]
    np.testing.assert_allclose(total[:inner], 1, rtol=1e-4)  # single precision, hundreds of rules


def test_em_climbs_from_pivots(small: Examples) -> None:
    config = PivotEmConfig(states=4, pivot_count=3, smoothing=False, steps=5)
    _, report = pivot.estimate_em(EstimatorInputs(small, 1, 1), config)
    assert len(report.log_likelihood) == 5
    assert (np.diff(report.log_likelihood) > 0).all()


@pytest.mark.parametrize("text", TINY)
def test_small_treebanks_are_learned(text: str) -> None:
    trees = [binarize(tree) for tree in map(normalize, read_string(text)) if tree is not None]
    examples = coded(forest_of(trees))
    tables, _ = pivot.estimate(EstimatorInputs(examples, 1, 1), PivotConfig(pivot_count=1))
    assert tables.c_one.sum() == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("name", ["pivot_count", "rule_steps"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(TrainingError, match=f"expected `{name}` of at least 1, got 0: raise it"):
        PivotConfig(**{name: 0})
    with pytest.raises(TrainingError, match="expected `steps` of at least 0, got -1: raise it"):
        PivotEmConfig(steps=-1)
