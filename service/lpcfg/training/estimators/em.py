"""Expectation maximization on given trees (Matsuzaki et al. 2005), in the form of terms.

A state i of symbol a chooses a rule r = a → b c together with one of r's terms t, which draws the
children's states independently of each other:

    P[t, i] = p(r, t | a, i)      L[t, j] = p(j | r, t)      R[t, k] = p(k | r, t)

    t(a → b c, j, k | a, i) = Σ_t P[t, i] · L[t, j] · R[t, k]

So the parameters are C in the form of `Tables`: no compaction is needed, no number is negative, and
a node costs K(m_a + m_b + m_c) steps instead of m_a m_b m_c. The model is as general as before: if
L and R are unit vectors, one t for every (j, k), they stay so, and this is EM on dense tensors.
With fewer terms, a rule seen n times has no more parameters than n examples can determine.

The E-step is inside-outside on the trees (figure 4). α is scaled to sum to one, and β such that
α · β = 1 at every node, so posteriors need no further scaling. With ℓ = L α of the left child,
r = R α of the right child, and u = P β of the parent,

    p(t | tree) = u_t ℓ_t r_t / Σ_t u_t ℓ_t r_t

and the expected counts of P, L and R are these products with P∘β, L∘α and R∘α in place of u, ℓ, r.

The recursion is written once more beside those of the engine, because a given tree has one rule
and one split a node, so that there is no chart, and because counts of terms are needed instead of
posteriors. The M-step divides, and smooths as the other estimators do (see `maximised`).
"""

from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from lpcfg.base.errors import TrainingError
from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Floats, Grammar, Ints, Longs, Tables
from lpcfg.training.data.examples import Examples
from lpcfg.training.estimators.compact import flat, shrinkage
from lpcfg.training.estimators.inputs import EstimatorInputs, check_least
from lpcfg.training.estimators.moments import Smoothing
from lpcfg.training.estimators.spectral import SpectralConfig

CHUNKS = 8
"""Parts that trees are cut into. Each is summed separately, so workers do not change the sums."""
NEGATIVE = 0.05
"""Starting tables may have at most this share of negative numbers, by magnitude.

Least squares leave 0.01 where all should be positive; tables in another basis have about a half.
"""


class Numbers(NamedTuple):
    """The numbers of a mixture, or their expected counts.

    P, L and R have a row for every term, the direction of c∞ a row for every entry, and c¹ a row
    for every symbol. Rows are padded with zeros behind their m numbers.
    """

    parent: Floats
    left: Floats
    right: Floats
    lexical: Floats
    root: Floats


class Shape(NamedTuple):
    """m of every symbol, and each rule's terms: those of rule r are first[r] : first[r + 1]."""

    rules: Ints
    states: Ints
    first: Longs


class Nodes(NamedTuple):
    """The trees, node by node.

    Each node has its symbol, its children, its rule or entry (-1: none), and its state if known
    (-1: unknown).
    """

    symbol: Ints
    left: Ints
    right: Ints
    rule: Ints
    entry: Ints
    state: Ints
    tree_start: Longs


# The E-step --------------------------------------------------------------------------------------


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _expect(nodes: Nodes, shape: Shape, given: Numbers, out: Numbers, first: int, last: int) -> Any:
    """Add the expected counts of trees first … last − 1 to `out`. Return their log-likelihood.

    The counts of P, L and R still have to be multiplied by P, L and R. The log-likelihood is -inf
    if a tree has probability zero.
    """
    longest, most = 1, 1
    for tree in range(first, last):
        longest = max(longest, nodes.tree_start[tree + 1] - nodes.tree_start[tree])
    for r in range(len(shape.rules)):
        most = max(most, shape.first[r + 1] - shape.first[r])
    width = given.parent.shape[1]
    alpha = np.zeros((longest, width), given.parent.dtype)
    beta = np.zeros((longest, width), given.parent.dtype)
    sides = np.zeros((longest, 2, most), given.parent.dtype)
    across = np.zeros((3, most), given.parent.dtype)
    total = 0.0
    for tree in range(first, last):
        base = nodes.tree_start[tree]
        count = nodes.tree_start[tree + 1] - base
        likelihood = _inside(nodes, shape, given, base, count, alpha, sides)
        if likelihood == -np.inf:
            return likelihood
        total += likelihood
        _outside(nodes, shape, given, out, base, count, (alpha, beta, sides, across))
    return total


@compiled(helper=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _inside(
    nodes: Nodes,
    shape: Shape,
    given: Numbers,
    base: int,
    count: int,
    alpha: Floats,
    sides: Floats,
) -> Any:
    """Compute α, ℓ and r of every node of a tree. Return log p(tree)."""
    total = 0.0
    for v in range(count):
        node = base + v
        m = shape.states[nodes.symbol[node]]
        own = alpha[v]
        r = nodes.rule[node]
        if r < 0:  # α = c∞ of the entry
            own[:m] = given.lexical[nodes.entry[node], :m]
        else:  # ℓ_t = L_t · α of the left child, r_t = R_t · α of the right; α = Σ_t P_t ℓ_t r_t
            own[:m] = 0.0
            left, right = alpha[nodes.left[node] - base], alpha[nodes.right[node] - base]
            m_left, m_right = shape.states[shape.rules[r, 1]], shape.states[shape.rules[r, 2]]
            start = shape.first[r]
            for t in range(shape.first[r + 1] - start):
                by_left = _dot(given.left[start + t], left, m_left)
                by_right = _dot(given.right[start + t], right, m_right)
                sides[v, 0, t], sides[v, 1, t] = by_left, by_right
                _add(own, given.parent[start + t], by_left * by_right, m)
        if nodes.state[node] >= 0:
            _only(own, nodes.state[node], m)
        scale = own[:m].sum()  # α sums to one; log p(tree) is the sum of the logs of these scales
        if not scale > 0:
            return -np.inf
        own[:m] /= scale
        total += np.log(scale)
    a = nodes.symbol[base + count - 1]  # and log c¹ · α at the root
    at_root = _dot(given.root[a], alpha[count - 1], shape.states[a])
    return total + np.log(at_root) if at_root > 0 else -np.inf


@compiled(helper=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _outside(
    nodes: Nodes,
    shape: Shape,
    given: Numbers,
    out: Numbers,
    base: int,
    count: int,
    work: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """Compute β of every node of a tree, and add each node's part to the expected counts."""
    alpha, beta, sides, across = work
    top = count - 1
    a = nodes.symbol[base + top]
    m = shape.states[a]
    # β = c¹ / (c¹ · α) at the root, whose posterior is α ∘ β
    beta[top, :m] = given.root[a, :m] / _dot(given.root[a], alpha[top], m)
    for i in range(m):
        out.root[a, i] += alpha[top, i] * beta[top, i]
    for v in range(top, -1, -1):
        node = base + v
        m = shape.states[nodes.symbol[node]]
        r = nodes.rule[node]
        if nodes.state[node] >= 0:
            _only(beta[v], nodes.state[node], m)
        if r < 0:  # the posterior of a leaf's states is α ∘ β
            for i in range(m):
                out.lexical[nodes.entry[node], i] += alpha[v, i] * beta[v, i]
            continue
        x, y = nodes.left[node] - base, nodes.right[node] - base
        m_left, m_right = shape.states[shape.rules[r, 1]], shape.states[shape.rules[r, 2]]
        start, n_terms = shape.first[r], shape.first[r + 1] - shape.first[r]
        # u_t = P_t · β; p(t | tree) = u_t ℓ_t r_t / whole, with whole = Σ_t u_t ℓ_t r_t
        whole = 0.0
        for t in range(n_terms):
            above = _dot(given.parent[start + t], beta[v], m)
            across[0, t] = sides[v, 0, t] * sides[v, 1, t]
            across[1, t] = above * sides[v, 1, t]
            across[2, t] = above * sides[v, 0, t]
            whole += above * across[0, t]
        # counts of P, L and R, still without these factors: β ℓ_t r_t, α u_t r_t and α u_t ℓ_t;
        # β of the left child is Σ_t L_t u_t r_t, of the right one Σ_t R_t u_t ℓ_t
        beta[x, :m_left] = 0.0
        beta[y, :m_right] = 0.0
        for t in range(n_terms):
            _add(out.parent[start + t], beta[v], across[0, t] / whole, m)
            _add(out.left[start + t], alpha[x], across[1, t] / whole, m_left)
            _add(out.right[start + t], alpha[y], across[2, t] / whole, m_right)
            _add(beta[x], given.left[start + t], across[1, t] / whole, m_left)
            _add(beta[y], given.right[start + t], across[2, t] / whole, m_right)


@compiled(helper=True, fastmath={"reassoc", "contract", "nsz"})
def _dot(left: Floats, right: Floats, m: int) -> Any:
    total = left[0] * right[0]
    for i in range(1, m):
        total += left[i] * right[i]
    return total


@compiled(helper=True, fastmath={"reassoc", "contract", "nsz"})
def _add(to: Floats, what: Floats, times: float, m: int) -> None:
    for i in range(m):
        to[i] += times * what[i]


@compiled(helper=True)
def _only(vector: Floats, state: int, m: int) -> None:
    """Set all entries but one state to zero."""
    kept = vector[state]
    vector[:m] = 0.0
    vector[state] = kept


# Mixtures ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mixture:
    """The parameters of an L-PCFG whose rules' tensors are mixtures of terms."""

    grammar: Grammar
    shape: Shape
    numbers: Numbers

    def tables(self) -> Tables:
        """Return the mixture as tables, without terms that no state takes."""
        used = self.numbers.parent.any(axis=1)
        rules, states = self.grammar.rules, self.shape.states
        rule = np.repeat(np.arange(len(rules)), np.diff(self.shape.first))[used]
        sides = [
            flat(rows[used], states[rules[rule, side]])
            for side, rows in enumerate(self.numbers[:3])
        ]
        return Tables(
            grammar=self.grammar,
            states=states,
            terms=np.bincount(rule, minlength=len(rules)).astype(np.int32),
            parent=sides[0],
            left=sides[1],
            right=sides[2],
            c_inf=flat(self.numbers.lexical, states[self.grammar.entries[:, 0]]),
            c_one=flat(self.numbers.root, states),
        )

    @classmethod
    def of(
        cls,
        tables: Tables,
        smoothing: Smoothing,
        *,
        dtype: type[np.floating[Any]] = np.float32,
    ) -> "Mixture":
        """Build the mixture that equals the tables of an L-PCFG.

        With smoothing, every rule gets an empty last term. Slightly negative numbers become zero.
        """
        _check_positive(tables)
        grammar, states = tables.grammar, tables.states
        spare = np.int64(smoothing.rule > 0)
        first = np.concatenate([[0], np.cumsum(tables.terms + spare)]).astype(np.int64)
        rule = np.repeat(np.arange(grammar.n_rules), np.diff(first))
        filled = np.ones(first[-1], np.bool_)
        filled[first[1:] - 1] = spare == 0
        width = int(states.max(initial=1))
        sides = []
        for side, joined in enumerate((tables.parent, tables.left, tables.right)):
            rows = np.zeros((first[-1], width), dtype)
            rows[filled] = _rows(joined, states[grammar.rules[rule[filled], side]], width)
            sides.append(rows)
        lexical = _rows(tables.c_inf, states[grammar.entries[:, 0]], width)
        root = _rows(tables.c_one, states, width)
        lexical, root = lexical.astype(dtype), root.astype(dtype)
        numbers = Numbers(sides[0], sides[1], sides[2], lexical, root)
        return cls(grammar, Shape(grammar.rules, states, first), numbers)


def _rows(numbers: Floats, length: Ints, width: int) -> Doubles:
    """Undo `flat`, and set negative numbers to zero."""
    rows = np.zeros((len(length), width))
    rows[np.arange(width) < length[:, None]] = np.maximum(numbers, 0.0)
    return rows


def _check_positive(tables: Tables) -> None:
    for name in ("parent", "left", "right", "c_inf", "c_one"):
        numbers = np.asarray(getattr(tables, name), np.float64)
        below = -numbers[numbers < 0].sum()
        if below > NEGATIVE * np.abs(numbers).sum():
            raise TrainingError(
                f"expected tables of probabilities, got `{name}` with "
                f"{100 * below / np.abs(numbers).sum():.0f} % of its magnitude negative: start "
                "from an estimator whose states are the model's own, like clustering"
            )


class Corpus:
    """Trees to learn from: their nodes, and the counts of their rules and entries."""

    def __init__(self, examples: Examples) -> None:
        forest, grammar = examples.forest, examples.grammar
        node_rule, node_entry = examples.node_rule, examples.node_entry
        self.grammar = grammar
        self.n_trees = forest.n_trees
        self.nodes = Nodes(
            forest.symbol,
            forest.left,
            forest.right,
            node_rule,
            node_entry,
            np.full(forest.n_nodes, -1, np.int32),
            forest.tree_start,
        )
        self.symbol_count = np.bincount(forest.symbol, minlength=grammar.n_symbols)
        self.rule_count = np.bincount(node_rule[node_rule >= 0], minlength=grammar.n_rules)
        roots = forest.symbol[forest.roots]
        self.root_count = np.bincount(roots, minlength=grammar.n_symbols)
        leaf = node_entry[node_entry >= 0]
        self.entry_count = np.bincount(leaf, minlength=len(grammar.entries))
        bounds = np.searchsorted(forest.tree_start, np.linspace(0, forest.n_nodes, CHUNKS + 1))
        self.chunks = [(int(i), int(j)) for i, j in pairwise(bounds) if i < j]

    def with_states(self, state: Ints) -> "Corpus":
        """Return the same trees with known states of their nodes."""
        known = copy(self)
        known.nodes = self.nodes._replace(state=state)
        return known

    @cached_property
    def entry_likelihood(self) -> float:
        """Σ over leaves of log count(a → x) / count(a), which the directions of c∞ leave out."""
        seen = self.entry_count[self.entry_count > 0]
        of = self.symbol_count[self.grammar.entries[self.entry_count > 0, 0]]
        return float((seen * np.log(seen / of)).sum())


def expected(corpus: Corpus, mixture: Mixture, *, workers: int) -> tuple[Numbers, float]:
    """Run the E-step: return expected counts and log p(trees), summed in double precision."""
    given = mixture.numbers

    def run(chunk: tuple[int, int]) -> tuple[Numbers, float]:
        out = Numbers(*(np.zeros_like(rows) for rows in given))
        return out, _expect(corpus.nodes, mixture.shape, given, out, *chunk)

    total = Numbers(*(np.zeros(rows.shape) for rows in given))
    likelihood = corpus.entry_likelihood
    with ThreadPoolExecutor(workers) as pool:
        for part, part_likelihood in pool.map(run, corpus.chunks):
            likelihood += part_likelihood
            for whole, rows in zip(total, part, strict=True):
                whole += rows
    if likelihood == -np.inf:
        raise TrainingError(
            "expected tables that give every tree of the treebank a probability, got one they "
            "give none: start from tables trained on the same trees, with smoothing"
        )
    for whole, rows in zip(total[:3], given[:3], strict=True):
        whole *= rows
    return total, likelihood


# The M-step --------------------------------------------------------------------------------------


def maximised(corpus: Corpus, mixture: Mixture, counts: Numbers, smoothing: Smoothing) -> Mixture:
    """Run the M-step: return the most likely L-PCFG for the smoothed expected counts.

    They are smoothed like the moments of the other estimators (`smoothed_terms`; νE + (1−ν)H of an
    entry).
    """
    grammar, shape = corpus.grammar, mixture.shape
    rules, dtype = grammar.rules, mixture.numbers.parent.dtype
    rule = np.repeat(np.arange(len(rules)), np.diff(shape.first))
    visits = _visits(grammar, rule, counts)
    share = _over(visits, visits.sum(axis=1))
    mass, sides = smoothed_terms(corpus, shape, rule, counts, share, smoothing)
    weight = smoothing.lexical_weight(corpus.entry_count)[:, None]
    emitted = weight * _over(counts.lexical, corpus.entry_count)
    emitted += (1.0 - weight) * share[grammar.entries[:, 0]]
    smoothed = Numbers(
        mass[:, None] * sides[0],
        sides[1],
        sides[2],
        emitted * corpus.entry_count[:, None],
        counts.root,
    )
    new_share = _over(_visits(grammar, rule, smoothed), corpus.symbol_count)
    size = corpus.symbol_count[rules[rule, 0]][:, None] * new_share[rules[rule, 0]]
    numbers = Numbers(
        _over(smoothed.parent, size),
        sides[1],
        sides[2],
        _over(emitted, new_share[grammar.entries[:, 0]]),
        counts.root / corpus.n_trees,
    )
    return replace(mixture, numbers=Numbers(*(rows.astype(dtype) for rows in numbers)))


def _over(rows: Floats, by: Floats | Longs) -> Doubles:
    """Divide the rows; give 0 where the divisor is 0."""
    below = by if by.ndim == 2 else by[:, None]
    result: Doubles = np.divide(rows, below, out=np.zeros(rows.shape), where=below > 0)
    return result


def _sums(group: Ints | Longs, n_groups: int, rows: Floats) -> Doubles:
    """Sum the rows of every group."""
    shape = (n_groups, len(rows))
    member = scipy.sparse.csr_array((np.ones(len(rows)), (group, np.arange(len(rows)))), shape)
    return np.asarray(member @ rows, np.float64)


def _visits(grammar: Grammar, rule: Longs, counts: Numbers) -> Doubles:
    """Compute the expected number of nodes of every symbol in every state."""
    n = grammar.n_symbols
    inner = _sums(grammar.rules[rule, 0], n, counts.parent)
    return inner + _sums(grammar.entries[:, 0], n, counts.lexical)


def smoothed_terms(
    corpus: Corpus,
    shape: Shape,
    rule: Longs,
    counts: Numbers,
    share: Doubles,
    smoothing: Smoothing,
) -> tuple[Doubles, list[Doubles]]:
    """Smooth the terms: return how often each is taken, and its three distributions over states.

    A term's distributions a become (uμ + v(a − μ)) / u, and its weight is multiplied by u³, as in
    `compact`. The last term of a rule gains (1−λ)³ · p(i|a) p(j|b) p(k|c) as one term; its
    distributions become the means. `share` is p(i | a), with rows by symbol.
    """
    n = corpus.rule_count
    size = counts.parent.sum(axis=1)
    if smoothing.rule == 0:
        return size, [_over(rows, rows.sum(axis=1)) for rows in counts[:3]]
    weight = smoothing.rule_weight(n)
    u, v = shrinkage(weight)
    keep = (v / np.where(u > 0, u, 1.0))[rule, None]
    rest = (1.0 - weight) ** 3
    mass = size * (1.0 - rest)[rule]
    last = shape.first[1:] - 1
    tail = n * rest
    sides = []
    for side, rows in enumerate(counts[:3]):
        mean = _over(_sums(rule, len(n), rows), n)
        own = _over(rows, rows.sum(axis=1))
        own = mean[rule] + keep * (own - mean[rule])
        merged = mass[last, None] * own[last] + tail[:, None] * share[corpus.grammar.rules[:, side]]
        own[last] = _over(merged, mass[last] + tail)
        sides.append(own)
    mass[last] += tail
    return mass, sides


# Starting points ---------------------------------------------------------------------------------


def numbers_of_terms(corpus: Corpus, terms: int, smoothing: Smoothing) -> Longs:
    """Return K_r of every rule: at most the number of its examples, plus one for smoothing."""
    seen = corpus.rule_count
    return np.minimum(seen, terms) + ((smoothing.rule > 0) & (seen > 0))


def split(
    corpus: Corpus,
    states: Ints,
    terms: int,
    smoothing: Smoothing,
    *,
    perturbation: float,
    seed: int,
    dtype: type[np.floating[Any]] = np.float32,
) -> Mixture:
    """Split relative frequencies evenly among states and terms, then perturb them.

    Every number is multiplied by 1 + perturbation · U(−1, 1), so that states and terms differ. The
    first M-step makes the sums one.
    """
    grammar = corpus.grammar
    k = numbers_of_terms(corpus, terms, smoothing)
    first = np.concatenate([[0], np.cumsum(k)]).astype(np.int64)
    rule = np.repeat(np.arange(grammar.n_rules), k)
    random = np.random.default_rng(seed)
    within = np.arange(int(states.max(initial=1)))

    def rows(symbol: Ints, value: Doubles | float) -> Floats:
        even = np.broadcast_to(value, len(symbol))[:, None] * (within < states[symbol][:, None])
        uneven: Floats = even * (1.0 + perturbation * random.uniform(-1.0, 1.0, even.shape))
        return uneven.astype(dtype)

    a, b, c = grammar.rules[rule].T
    numbers = Numbers(
        rows(a, corpus.rule_count[rule] / corpus.symbol_count[a] / k[rule]),
        rows(b, 1.0 / states[b]),
        rows(c, 1.0 / states[c]),
        rows(grammar.entries[:, 0], 1.0),
        rows(
            np.arange(grammar.n_symbols, dtype=np.int32),
            corpus.root_count / corpus.n_trees / states,
        ),
    )
    if smoothing.rule > 0:  # empty until the first M-step
        numbers.parent[first[1:][k > 0] - 1] = 0.0
    return Mixture(grammar, Shape(grammar.rules, states, first), numbers)


def from_clusters(
    corpus: Corpus,
    states: Ints,
    state: Ints,
    terms: int,
    smoothing: Smoothing,
    *,
    sweeps: int,
    seed: int,
    workers: int,
) -> Mixture:
    """Find the most likely mixture for trees with known states, by some sweeps of EM.

    This is a local optimum where tensors of relative frequencies need more terms.
    `states` are m of every symbol, `state` is that of every node.
    """
    mixture = split(corpus, states, terms, smoothing, perturbation=PERTURBATION, seed=seed)
    known = corpus.with_states(state)
    for _ in range(sweeps):
        counts, _ = expected(known, mixture, workers=workers)
        mixture = maximised(known, mixture, counts, smoothing)
    return mixture


# Climbing ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EmReport:
    """The course of EM.

    log_likelihood[n] is log p(trees) after n steps, except the last; scores[n] is the result of
    `choose` after n steps (empty without it); `steps` were kept in the end.
    """

    states: Ints
    terms: Ints
    log_likelihood: tuple[float, ...]
    scores: tuple[float, ...]
    steps: int

    def facts(self, grammar: Grammar) -> dict[str, object]:
        """Return the report as facts for a manifest."""
        del grammar
        return {
            "states": self.states.tolist(),
            "terms": int(self.terms.sum()),
            "log_likelihood": [round(value, 2) for value in self.log_likelihood],
            "held_out_f1": [round(value, 2) for value in self.scores],
            "steps": self.steps,
        }


def climb(
    inputs: EstimatorInputs,
    corpus: Corpus,
    mixture: Mixture,
    smoothing: Smoothing,
    *,
    steps: int,
    patience: int = 0,
) -> tuple[Tables, EmReport]:
    """Run EM from a mixture.

    Args:
        inputs: of the estimator; `choose` scores the tables of each step.
        corpus: the trees.
        mixture: where EM begins.
        smoothing: of the counts.
        steps: the most steps.
        patience: stop after so many steps without a better score, and keep the best tables.

    Returns:
        Tables, and the course of EM.
    """
    likelihoods: list[float] = []
    scores: list[float] = []
    asked = inputs.choose if patience > 0 else None
    best = tables = mixture.tables()
    with inputs.stages.stage("expectation maximization", steps) as stage:
        for step in range(steps + 1):
            if asked is not None:
                scores.append(asked(tables))
                best = tables if scores[-1] > max(scores[:-1], default=-np.inf) else best
                if step - int(np.argmax(scores)) >= patience:
                    break
            if step == steps:
                break
            counts, likelihood = expected(corpus, mixture, workers=inputs.workers)
            likelihoods.append(likelihood)
            mixture = maximised(corpus, mixture, counts, smoothing)
            tables = mixture.tables()
            stage.advance()
    chosen = best if scores else tables
    taken = int(np.argmax(scores)) if scores else steps
    report = EmReport(chosen.states, chosen.terms, tuple(likelihoods), tuple(scores), taken)
    return chosen, report


# The estimator -----------------------------------------------------------------------------------

PERTURBATION = 0.5
"""Of terms that known states will make different."""


@dataclass(frozen=True)
class EmConfig:
    """Settings of EM from perturbed splits.

    states              m: no symbol has more latent states than this
    examples            a symbol has at least this many examples per state
    terms               the most rank-one terms of a rule; None: by the states
    perturbation        every number of the even split is scaled by 1 ± this at most
    steps               of EM
    patience            with trees to choose by, stop after this many steps without improvement, and
                        keep the best; 0 takes all steps
    smoothing           estimates back off to lower moments
    rule_back_off       C in λ = √n / (C + √n) of a rule seen n times; None: by the states
    lexical_back_off    the same in ν of an entry seen n times
    """

    states: int = 16
    examples: int = 4
    terms: int | None = None
    perturbation: float = 0.5
    steps: int = 40
    patience: int = 0
    smoothing: bool = True
    rule_back_off: float | None = None
    lexical_back_off: float = 4.0

    def __post_init__(self) -> None:
        self.spectral()
        check_least(self, steps=0, patience=0, examples=1)
        if not 0 < self.perturbation <= 1:
            raise TrainingError(
                f"expected `perturbation` above 0 up to 1, got {self.perturbation}: without it "
                "all states stay the same"
            )

    def spectral(self) -> SpectralConfig:
        """Return the settings shared with the spectral estimator, which checks and completes
        them.
        """
        return SpectralConfig(
            states=self.states,
            terms=self.terms,
            smoothing=self.smoothing,
            rule_back_off=self.rule_back_off,
            lexical_back_off=self.lexical_back_off,
        )


def estimate(inputs: EstimatorInputs, config: EmConfig) -> tuple[Tables, EmReport]:
    """Estimate tables by EM from perturbed splits."""
    corpus = Corpus(inputs.examples)
    common = config.spectral()
    states = np.clip(corpus.symbol_count // config.examples, 1, config.states).astype(np.int32)
    mixture = split(
        corpus,
        states,
        common.compaction.terms,
        common.smoothing_weights,
        perturbation=config.perturbation,
        seed=inputs.seed,
    )
    smoothing, steps, patience = common.smoothing_weights, config.steps, config.patience
    return climb(inputs, corpus, mixture, smoothing, steps=steps, patience=patience)
