"""Estimate latent-class bigram models: EM, pivots, and EM from pivots.

All maximise, by EM and over r, or over r and s, the penalised likelihood

    L(r, s) = Σ count(w1, w2) log Σ_h r(h|w1) s(w2|h)  +  c Σ_{w1,h} π(h) log r(h|w1):

a context's state distribution has c pseudo-counts distributed as π. c = 0 is the maximum
likelihood of the paper. As there, the number of steps is the one best on a development text.

    EM        r, s from slight perturbations of symmetry; π uniform
    pivot     s and π by pivots among the words w2 (ACL14, section 5.2, on Qᵀ), then r by EM with s
              fixed, which is concave (section 8)
    pivot+EM  the same, then EM over r and s
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

import numpy as np
from scipy import sparse

from lpcfg.base.errors import SettingsError, TrainingError
from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Longs
from lpcfg.lm.corpus import Sentence, Vocabulary
from lpcfg.lm.model import LanguageModel, Training, perplexity
from lpcfg.training.estimators.pivot_decomposition import decompose_rows, emissions

EstimatorName = Literal["em", "pivot", "pivot+em"]

PATIENCE = 3
"""EM stops after this many steps without a better development perplexity.

The perplexity over the steps has one minimum, with ripples of a step or two around it.
"""
CCA_SHRINKAGE = 200.0
"""In bigrams. Chosen on the first half of Brown's development text, like the two below."""
PIVOT_COUNT = 50
"""A pivot occurs at least this often, or is among the PIVOTS_PER_STATE · m most frequent words."""
PIVOTS_PER_STATE = 4


@dataclass(frozen=True, slots=True)
class EstimationOptions:
    """Options of a model and of its estimation."""

    estimator: EstimatorName = "pivot+em"
    states: int = 256
    seed: int = 0
    min_count: int = 2
    """words seen less often are one unknown word"""
    prior: float = 3.0
    """c: pseudo-counts of every context's states"""
    max_steps: int = 100
    """steps of EM over r alone, and of EM over r and s"""

    def __post_init__(self) -> None:
        if self.estimator not in get_args(EstimatorName):
            raise SettingsError(
                f"expected an estimator of {', '.join(get_args(EstimatorName))}, "
                f"got {self.estimator!r}: choose one of them"
            )
        for name, least in (("states", 1), ("seed", 0), ("min_count", 1), ("max_steps", 1)):
            value = getattr(self, name)
            if value < least:
                raise SettingsError(f"expected `{name}` of at least {least}, got {value}: raise it")
        if not 0 <= self.prior < np.inf:
            raise SettingsError(
                f"expected a finite `prior` of at least 0, got {self.prior}: use 0 for none of it"
            )


@dataclass(frozen=True, slots=True)
class Distributions:
    """r(h|w1), (|V| + 1, m); s(w2|h), (|V|, m); π(h), (m,)."""

    contexts: Doubles
    words: Doubles
    prior: Doubles


@dataclass(frozen=True, slots=True)
class Step:
    """One EM step: the objective before it and the perplexity after it."""

    words_too: bool
    """over r and s, not over r alone"""
    number: int
    objective: float
    """L before the step"""
    dev_perplexity: float
    """after the step"""


def train_lm(
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    options: EstimationOptions,
    *,
    on_step: Callable[[Step], None] = lambda _: None,
) -> LanguageModel:
    """Estimate a model, with the number of EM steps that is best on `dev`.

    Raises:
        TrainingError: for more states than words
        InputError: for development text without a known word
    """
    vocabulary = Vocabulary.of(train, options.min_count)
    bigrams, held_out = vocabulary.bigrams(train), vocabulary.scored_bigrams(dev)
    if options.states > len(vocabulary.words):
        raise TrainingError(
            f"expected at most {len(vocabulary.words)} states, the size of the vocabulary, "
            f"got {options.states}: ask for fewer or train on more text"
        )
    task = _EmTask(bigrams, held_out, options.prior, options.max_steps, on_step)
    pivot_steps = steps = 0
    if options.estimator == "em":
        distributions = symmetric_start(bigrams, options.states, options.seed)
    else:
        distributions = pivot_start(bigrams, options.states, options.prior, options.seed)
        distributions, pivot_steps, reached = _run_em(task, distributions, words_too=False)
    if options.estimator != "pivot":
        distributions, steps, reached = _run_em(task, distributions, words_too=True)
    record = Training(
        **asdict(options), pivot_steps=pivot_steps, steps=steps, dev_perplexity=reached
    )
    return LanguageModel(vocabulary, distributions.contexts, distributions.words, record)


def symmetric_start(bigrams: sparse.csr_matrix, m: int, seed: int) -> Distributions:
    """Start with every state near the unigram distribution, and every context near uniform."""
    noise = np.random.default_rng(seed)
    unigram = np.asarray(bigrams.sum(axis=0)).ravel()
    contexts = 1 + noise.random((bigrams.shape[0], m))
    words = unigram[:, None] * (1 + noise.random((len(unigram), m)))
    return Distributions(
        contexts / contexts.sum(axis=1, keepdims=True),
        words / words.sum(axis=0),
        np.full(m, 1 / m),
    )


def pivot_start(bigrams: sparse.csr_matrix, m: int, prior: float, seed: int) -> Distributions:
    """Start with s and π found by pivots, and r(h|w1) = π(h) for every context.

    The place of a rare word among the pivots is noise, so its p(h|w2) gets `prior` pseudo-counts
    distributed as π. Every state then has every word.
    """
    counts = np.asarray(bigrams.sum(axis=0)).ravel()
    frequent = np.sort(counts)[::-1][: PIVOTS_PER_STATE * m][-1]
    candidates = np.flatnonzero(counts >= min(PIVOT_COUNT, frequent))
    factors = decompose_rows(
        sparse.csr_matrix(bigrams.T),
        m,
        candidates=candidates,
        shrinkage=CCA_SHRINKAGE,
        seed=seed,
    )
    share = np.divide(counts, counts + prior, out=np.zeros_like(counts), where=counts > 0)[:, None]
    weights = share * factors.weights + (1 - share) * factors.prior
    words, _ = emissions(weights, counts)
    return Distributions(np.tile(factors.prior, (bigrams.shape[0], 1)), words, factors.prior)


@dataclass(frozen=True, slots=True)
class _EmTask:
    """The data that stay the same from step to step."""

    bigrams: sparse.csr_matrix
    dev: sparse.csr_matrix
    prior: float
    max_steps: int
    on_step: Callable[[Step], None]


def _run_em(
    task: _EmTask, start: Distributions, *, words_too: bool
) -> tuple[Distributions, int, float]:
    """Run EM from `start`, at least one step.

    Returns:
        The distributions that are best on the development text, their step and perplexity
    """
    now, best, best_step, best_perplexity = start, start, 0, np.inf
    for number in range(1, task.max_steps + 1):
        now, objective = em_step(task.bigrams, now, task.prior, words_too=words_too)
        reached = perplexity(task.dev, now.contexts, now.words)
        task.on_step(Step(words_too, number, objective, reached))
        if reached < best_perplexity or best_step == 0:
            best, best_step, best_perplexity = now, number, reached
        if number - best_step >= PATIENCE:
            break
    return best, best_step, best_perplexity


def em_step(
    bigrams: sparse.csr_matrix, now: Distributions, prior: float, *, words_too: bool
) -> tuple[Distributions, float]:
    """Take one EM step over r, or over r and s. Return it with L before it. L never decreases.

    A context or state without any count stays as it is.
    """
    context_counts = np.zeros_like(now.contexts)
    word_counts = np.zeros_like(now.words)
    objective = _add_expected_counts(
        bigrams.indptr,
        bigrams.indices,
        bigrams.data,
        now.contexts,
        now.words,
        context_counts,
        word_counts,
    )
    if prior > 0:
        objective += prior * float(np.sum(np.log(now.contexts) @ now.prior))
    counts = now.contexts * context_counts + prior * now.prior
    contexts = _normalised(counts, now.contexts, axis=1)
    words = _normalised(now.words * word_counts, now.words, axis=0) if words_too else now.words
    return Distributions(contexts, words, now.prior), objective


def _normalised(counts: Doubles, otherwise: Doubles, *, axis: int) -> Doubles:
    """Normalise counts to distributions along an axis. Use `otherwise` where they sum to zero."""
    sums = counts.sum(axis=axis, keepdims=True)
    result: Doubles = np.divide(counts, sums, out=otherwise.copy(), where=sums > 0)
    return result


@compiled(fastmath={"reassoc", "contract"})
def _add_expected_counts(
    row_start: Longs,
    column: Longs,
    count: Doubles,
    contexts: Doubles,
    words: Doubles,
    context_counts: Doubles,
    word_counts: Doubles,
) -> float:
    """Add expected counts Σ count(w1, w2) p(h | w1, w2) to the last two: of contexts, divided
    by r, and of words, divided by s. Here p(h | w1, w2) = r(h | w1) s(w2 | h) / p(w2 | w1). Return
    the log-likelihood.

    Sums may be reordered, so that the compiler can use vector instructions. No probability here is
    zero: a bigram has positive probability under every start, and EM keeps it so.
    """
    total = 0.0
    m = contexts.shape[1]
    for w1 in range(len(row_start) - 1):
        for entry in range(row_start[w1], row_start[w1 + 1]):
            w2 = column[entry]
            probability = 0.0
            for h in range(m):
                probability += contexts[w1, h] * words[w2, h]
            total += count[entry] * np.log(probability)
            ratio = count[entry] / probability
            for h in range(m):
                context_counts[w1, h] += ratio * words[w2, h]
                word_counts[w2, h] += ratio * contexts[w1, h]
    return total
