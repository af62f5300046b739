"""Spectral estimation as a whole: it learns a known L-PCFG, and does not stumble."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from lpcfg.base.errors import TrainingError
from lpcfg.engine.exact.inside_outside import tree_probability
from lpcfg.grammar.known import enumerate_trees
from lpcfg.grammar.tables import Emissions, Grammar, Tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.data.features import ALL_TEMPLATES, SIMPLE_TEMPLATES
from lpcfg.training.data.treebank import forest_of, lexicon_of
from lpcfg.training.estimators import pcfg as counts
from lpcfg.training.estimators import spectral
from lpcfg.training.estimators.inputs import EstimatorInputs
from lpcfg.training.estimators.spectral import SpectralConfig, SpectralReport, estimate, project
from lpcfg.training.stages import Stages
from lpcfg.trees.binarize import binarize
from lpcfg.trees.brackets import parse_tree, read
from lpcfg.trees.normalize import normalize
from lpcfg.trees.tree import Tree
from tests import naive_spectral as naive
from tests.strategies_grammar import random_lpcfg

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PARTS = ("parent", "left", "right", "c_inf", "c_one")


class Learned:
    """Tables from s-trees, every word a terminal, and what they say of trees."""

    def __init__(
        self, trees: list[Tree], config: SpectralConfig, seed: int = 1, workers: int = 1
    ) -> None:
        self.forest = forest_of(trees)
        self.lexicon = lexicon_of(self.forest, rare_threshold=0, language="neutral")
        self.examples = Examples.of(self.forest, self.lexicon)
        self.grammar = self.examples.grammar
        self.node_rule, self.node_entry = self.examples.node_rule, self.examples.node_entry
        self.entry_count = np.bincount(self.node_entry[self.node_entry >= 0])
        self.symbol_count = np.bincount(self.forest.symbol)
        self.tables, self.report = estimate(EstimatorInputs(self.examples, seed, workers), config)

    def probability(self, tree: Tree) -> float:
        return self._probability(self.tables, tree)

    def counted_probability(self, tree: Tree) -> float:
        """Compute p(tree) under the treebank PCFG."""
        return self._probability(counts.estimate(self.examples), tree)

    def _probability(self, tables: Tables, tree: Tree) -> float:
        return tree_probability(tables, tree, self._emissions(tree)).probability.value

    def _emissions(self, tree: Tree) -> Emissions:
        """Return emissions with c∞ = count(a → x) / count(a) · direction."""
        grammar = self.grammar
        entries = [
            grammar.entry_ids[
                grammar.symbol_ids[leaf.label], grammar.terminals.index(leaf.word or "")
            ]
            for leaf in tree.leaves()
        ]
        symbol = grammar.entries[entries, 0]
        weight = self.entry_count[entries] / self.symbol_count[symbol]
        start = np.arange(len(entries) + 1, dtype=np.int32)
        return Emissions(start, symbol, np.array(entries, np.int32), weight)


def small_treebank(horizontal: int = 1) -> list[Tree]:
    trees = [normalize(tree) for tree in read(EXAMPLES / "small.mrg")]
    return [binarize(tree, horizontal=horizontal) for tree in trees if tree is not None]


# A known grammar ----------------------------------------------------------------------------------


def known_lpcfg() -> Tables:
    """Build an L-PCFG with two states a symbol, told apart by rules, labels and places in the tree;
    S has one.
    """
    names = ("A", "B", "S", "D", "N")
    a, b, s, d, n = range(5)
    rules = [(a, d, n), (a, n, d), (b, d, d), (b, n, n), (s, a, a), (s, a, b), (s, b, a), (s, b, b)]
    entries = [(d, 0), (n, 0), (d, 1), (n, 1), (d, 2), (n, 2)]
    grammar = Grammar(names, 3, np.array(rules), ("x", "y", "z"), np.array(entries))
    lpcfg = random_lpcfg(np.random.default_rng(5), grammar, [2, 2, 1, 2, 2], concentration=0.5)
    roots = np.zeros_like(lpcfg.c_one)
    roots[lpcfg.root_offset[s]] = 1.0
    return Tables(
        grammar, lpcfg.states, lpcfg.terms, lpcfg.parent, lpcfg.left, lpcfg.right,
        lpcfg.c_inf, roots,
    )  # fmt: skip


def test_trees_of_a_known_lpcfg_teach_their_probabilities() -> None:
    """Theorem 8 with real features: total variation falls as one over the root of the sample."""
    trees, truth = zip(*enumerate_trees(known_lpcfg(), 4), strict=True)
    assert sum(truth) == pytest.approx(1.0)
    config = SpectralConfig(states=2, cut=0.0, smoothing=False)
    sizes = np.array([4_000, 16_000, 64_000])
    errors = np.zeros((4, 3))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        for k, size in enumerate(sizes):
            drawn = rng.multinomial(size, truth)
            sample = [t for t, n in zip(trees, drawn, strict=True) for _ in range(n)]
            learned = Learned(sample, config)
            assert learned.tables.states.tolist() == [2, 2, 1, 2, 2]
            found = [
                learned.probability(t) if n else 0.0 for t, n in zip(trees, drawn, strict=True)
            ]
            errors[seed, k] = 0.5 * np.abs(np.array(found) - truth).sum()
    means = errors.mean(axis=0)
    slope = np.polyfit(np.log(sizes), np.log(means), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)
    counted = [learned.counted_probability(t) for t in trees]
    assert 0.5 * np.abs(np.array(counted) - truth).sum() > 10 * means[-1]


def exact_treebank(times: int) -> dict[Tree, int]:
    """Build trees in which A has two states, every tree exactly as frequent as it is probable."""
    state = np.array([3, 5])  # of 8: p(h)
    below = np.array([[4, 3, 1], [0, 2, 6]])  # of 8: p(A → X Y_i | h)
    beside = np.array([[6, 1, 1], [1, 1, 6]])  # of 8: p(S → A B_j | h)
    counts = np.einsum("h,hi,hj->ij", state, below, beside)
    return {
        parse_tree(f"(S (A (X x) (Y{i} y)) (B{j} b))"): times * int(counts[i, j])
        for i in range(3)
        for j in range(3)
    }


@pytest.mark.parametrize("times", [1, 128])
def test_exact_frequencies_give_back_the_probabilities_of_trees(times: int) -> None:
    """No sampling error is left, so what remains is arithmetic, over 65,536 trees."""
    counts = exact_treebank(times)
    total = sum(counts.values())
    assert total == 512 * times
    config = SpectralConfig(states=2, cut=0.0, smoothing=False)
    learned = Learned([tree for tree, n in counts.items() for _ in range(n)], config)
    assert learned.tables.states[learned.grammar.symbol_ids["A"]] == 2
    found = {tree: learned.probability(tree) for tree in counts}
    # Blocks of 512 examples are added in single precision: 2.3e-6 were measured, and 1.2e-4 when
    # all examples were.
    assert 0.5 * sum(abs(found[tree] - n / total) for tree, n in counts.items()) < 1e-5


# The slow twin ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "smoothing"), [(1, True), (2, True), (2, False), (3, True), (40, False)]
)
def test_tree_probabilities_are_those_of_the_slow_twin(states: int, smoothing: bool) -> None:
    """Every tree of our example treebank; a basis that is not NAACL's changes nothing.

    40 states are more than any symbol can have, and with so many terms no rule is approximated,
    but that smoothed ones lack their (λ − v³)T, half a percent of a tensor.
    """
    trees = small_treebank()
    config = SpectralConfig(
        states=states, cut=0.0, smoothing=smoothing, rule_back_off=3.0, terms=4000
    )
    learned = Learned(trees, config)
    constants = (3.0, 4.0) if smoothing else (0.0, 0.0)
    twin = naive.Spectral(trees, states, 5.0, *constants)
    found = [learned.probability(tree) for tree in trees]
    expected = [twin.probability(tree) for tree in trees]
    # Vectors are in single precision, and a tree multiplies up to 40 of them.
    np.testing.assert_allclose(found, expected, rtol=2e-2 if smoothing and states > 1 else 1e-3)


def test_signs_and_rotations_of_singular_vectors_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    trees = small_treebank()
    config = SpectralConfig(states=4, terms=5)
    before = Learned(trees, config)
    decomposed = spectral._decomposed
    rng = np.random.default_rng(0)

    def flipped(*arguments: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        u, sigma, v = decomposed(*arguments)
        signs = rng.choice([-1.0, 1.0], len(sigma))
        return u * signs, sigma, v * signs

    monkeypatch.setattr(spectral, "_decomposed", flipped)
    after = Learned(trees, config)
    assert before.tables.c_inf.tolist() != after.tables.c_inf.tolist()
    found, expected = ([one.probability(tree) for tree in trees] for one in (after, before))
    np.testing.assert_allclose(found, expected, rtol=1e-3)  # single precision, as above


@pytest.mark.parametrize("shape", [(500, 40), (40, 500), (400, 420)])
def test_all_solvers_give_the_singular_vectors(shape: tuple[int, int]) -> None:
    """Gram matrix of the rows, of the columns, and Lanczos, against LAPACK's dense SVD."""
    matrix = scipy.sparse.random_array(shape, density=0.1, rng=np.random.default_rng(1)).tocsr()
    u, sigma, v = spectral._decomposed(matrix, 5)
    dense = matrix.toarray()
    np.testing.assert_allclose(sigma, np.linalg.svd(dense, compute_uv=False)[:5], rtol=1e-10)
    np.testing.assert_allclose(dense @ v, u * sigma, atol=1e-10)
    np.testing.assert_allclose(dense.T @ u, v * sigma, atol=1e-10)


# Determinism --------------------------------------------------------------------------------------


def same_bytes(one: Tables, other: Tables) -> bool:
    return all(getattr(one, part).tobytes() == getattr(other, part).tobytes() for part in PARTS)


@pytest.mark.parametrize("settings", [{}, {"noise": 0.1, "dropout": 0.3}])
def test_workers_change_no_byte(settings: dict[str, float]) -> None:
    config = SpectralConfig(states=6, terms=8, **settings)
    one, two = (Learned(small_treebank(), config, workers=workers) for workers in (1, 2))
    assert same_bytes(one.tables, two.tables)


def test_workers_change_no_byte_of_a_real_model(treebanks: Path) -> None:
    """With symbols large enough for Lanczos, and rules for clusters and sweeps."""
    trees = [normalize(tree) for tree in read(treebanks / "gum" / "train.mrg")][::4]
    strees = [binarize(tree) for tree in trees if tree is not None]
    one, two = (Learned(strees, SpectralConfig(states=16), workers=w) for w in (1, 2))
    assert same_bytes(one.tables, two.tables)


def test_the_seed_matters_only_to_noise_and_dropout() -> None:
    trees = small_treebank()
    for settings, same in (({}, True), ({"noise": 0.1}, False), ({"dropout": 0.5}, False)):
        config = SpectralConfig(states=4, **settings)
        first, again, other = (Learned(trees, config, seed=s).tables for s in (1, 1, 2))
        assert same_bytes(first, again)
        assert same_bytes(first, other) is same


# Settings -----------------------------------------------------------------------------------------


def test_templates_are_left_out_by_name() -> None:
    config = SpectralConfig(without=("inside:left", "outside:head"))
    kept = [name for name in ALL_TEMPLATES if name not in config.without]
    assert list(config.chosen(1)) == kept
    assert SpectralConfig(templates=SIMPLE_TEMPLATES).chosen(1) == SIMPLE_TEMPLATES


def test_dropout_keeps_the_simple_templates_and_the_expected_share_of_the_others() -> None:
    config = SpectralConfig(dropout=0.25)
    chosen = [config.chosen(seed) for seed in range(400)]
    assert all(set(SIMPLE_TEMPLATES) <= set(names) for names in chosen)
    counted = Counter(name for names in chosen for name in names)
    others = [counted[name] / 400 for name in ALL_TEMPLATES if name not in SIMPLE_TEMPLATES]
    assert np.abs(np.array(others) - 0.75).max() < 0.08  # 3.7 standard deviations of 400 draws


def test_every_setting_matters() -> None:
    trees = small_treebank()
    base = Learned(trees, SpectralConfig(states=4, terms=5)).tables
    changed: list[dict[str, object]] = [
        {"states": 3},
        {"templates": SIMPLE_TEMPLATES},
        {"without": ("outside:head",)},
        {"scaling": False},
        {"kappa": 1.0},
        {"cut": 0.6},
        {"smoothing": False},
        {"rule_back_off": 2.0},
        {"lexical_back_off": 1.0},
        {"terms": 4},
        {"sweeps": 2},
    ]
    for settings in changed:
        config = SpectralConfig(**{"states": 4, "terms": 5, **settings})  # type: ignore[arg-type]
        assert not same_bytes(base, Learned(trees, config).tables), settings


def test_constants_grow_with_the_states() -> None:
    """Those that were measured best, and in proportion between."""
    found = {m: SpectralConfig(states=m).smoothing_weights.rule for m in (4, 16, 20, 24, 32)}
    assert found == {4: 10.0, 16: 10.0, 20: 12.5, 24: 15.0, 32: 25.0}
    assert {m: SpectralConfig(states=m).compaction.terms for m in (4, 16, 32)} == {
        4: 16,
        16: 16,
        32: 24,
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"states": 0}, "expected `states` of at least 1, got 0: raise it"),
        ({"terms": 0}, "expected `terms` of at least 1, got 0: raise it"),
        ({"sweeps": 0}, "expected `sweeps` of at least 1, got 0: raise it"),
        ({"kappa": -1.0}, "expected `kappa` of 0 or more, got -1.0: use 0 for none of it"),
        ({"noise": float("nan")}, "expected `noise` of 0 or more, got nan"),
        ({"cut": 1.0}, "expected `cut` from 0 up to but not 1, got 1.0: use 0 for none of it"),
        ({"dropout": 1.5}, "expected `dropout` from 0 up to but not 1, got 1.5"),
        ({"without": ("inside:no",)}, "expected feature templates among .*, got inside:no"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        SpectralConfig(**settings)  # type: ignore[arg-type]


# Treebanks with little in them --------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [True, False])
def test_trees_that_are_all_equal_get_probability_one(smoothing: bool) -> None:
    tree = parse_tree("(S (NP (D the) (N cat)) (VP (V saw) (NP (D the) (N cat))))")
    learned = Learned([tree] * 50, SpectralConfig(states=4, smoothing=smoothing))
    # Two NPs, over the same words: one is a subject, and only that is not certain a priori.
    assert learned.probability(tree) == pytest.approx(1.0, rel=1e-5)


def test_one_tree_is_enough() -> None:
    tree = parse_tree("(S (NP (D the) (N cat)) (VP (V slept) (R well)))")
    learned = Learned([tree], SpectralConfig(states=8))
    assert learned.tables.states.max() == 1  # one example, so rank 1
    assert learned.probability(tree) == pytest.approx(1.0, rel=1e-5)


def test_trees_of_one_word_have_their_relative_frequencies() -> None:
    trees = [parse_tree(text) for text in ("(N yes)", "(N yes)", "(N no)", "(V go)")]
    learned = Learned(trees, SpectralConfig(states=8))
    found = [learned.probability(tree) for tree in trees]
    assert found == pytest.approx([0.5, 0.5, 0.25, 0.25], rel=1e-5)


def test_a_preterminal_with_one_word_has_one_state() -> None:
    """Its inside trees are all alike: Ω has rank 1."""
    learned = Learned(small_treebank(), SpectralConfig(states=8))
    grammar, states = learned.grammar, learned.tables.states
    words = np.bincount(grammar.entries[:, 0], minlength=grammar.n_symbols)
    single = np.flatnonzero(words == 1)
    assert len(single)
    assert states[single].max() == 1


def test_no_symbol_has_more_states_than_examples_or_features() -> None:
    learned = Learned(small_treebank(), SpectralConfig(states=50, cut=0.0))
    features = spectral.Features.of(spectral.NodeArrays(learned.examples), ALL_TEMPLATES)
    for a, m in enumerate(learned.tables.states):
        sides = (features.inside(a), features.outside(a))
        assert m <= min(len(sides[0].feature), *(side.n_features for side in sides))
        assert len(learned.report.singular_values[a]) >= m


@pytest.mark.parametrize(
    "without", [("word:identity",), tuple(t for t in ALL_TEMPLATES if t.startswith("outside"))]
)
def test_symbols_without_features_have_one_state(without: tuple[str, ...]) -> None:
    """Ω is empty, and the symbol that of a treebank PCFG."""
    trees = small_treebank()
    learned = Learned(trees, SpectralConfig(states=4, without=without))
    if without[0].startswith("outside"):
        assert learned.tables.states.max() == 1
        found = [learned.probability(tree) for tree in trees]
        expected = [learned.counted_probability(tree) for tree in trees]
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    else:
        assert learned.tables.states[learned.grammar.n_internal :].max() == 1
        assert learned.tables.states[: learned.grammar.n_internal].max() > 1


def test_a_cut_leaves_only_singular_values_above_it() -> None:
    learned = Learned(small_treebank(), SpectralConfig(states=8, cut=0.5))
    for m, values in zip(learned.tables.states, learned.report.singular_values, strict=True):
        assert m == (values > 0.5 * values[0]).sum()


# What is told of it -------------------------------------------------------------------------------


def test_the_report_holds_spectra_ranks_errors_and_stages() -> None:
    learned = Learned(small_treebank(), SpectralConfig(states=5))
    report: SpectralReport = learned.report
    assert all((np.diff(values) <= 0).all() for values in report.singular_values)
    assert report.states.tolist() == learned.tables.states.tolist()
    assert report.terms.tolist() == learned.tables.terms.tolist()
    facts = report.facts(learned.grammar)
    assert facts["terms"] == report.terms.sum()
    assert facts["largest_term_error"] == report.error.max() > 0
    spectra = facts["singular_values"]
    assert isinstance(spectra, dict)
    assert list(spectra) == list(learned.grammar.symbols)
    stages = Stages()
    estimate(EstimatorInputs(learned.examples, 1, 1, stages), SpectralConfig(states=5))
    assert [record.name for record in stages.records] == ["features", "decomposition", "moments"]
    assert [record.items for record in stages.records] == [
        learned.forest.n_nodes,
        learned.grammar.n_symbols,
        learned.grammar.n_rules,
    ]


def test_projected_nodes_are_padded_with_zeros_and_balanced() -> None:
    """Row v holds m_a numbers; Σ ZYᵀ over a symbol's examples is M_a times the identity."""
    learned = Learned(small_treebank(), SpectralConfig(states=5))
    projection, _ = project(
        EstimatorInputs(learned.examples, 1, 1), SpectralConfig(states=5, cut=0.0)
    )
    for a, m in enumerate(projection.states):
        own = learned.forest.symbol == a
        for rows in (projection.inside[own], projection.outside[own]):
            assert not rows[:, m:].any()
        means = projection.outside[own, :m].T @ projection.inside[own, :m] / own.sum()
        np.testing.assert_allclose(means, np.eye(m), atol=1e-4)  # single precision
