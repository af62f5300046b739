"""Projective trees by dynamic programming (Eisner 1996): sums, marginals, the best.

Scores are of arcs: score[h, m] of the arc from h to m, words from 1, h = 0 for the root; a tree has
one root. Items of a span of words i … j, each with its head first (h, e are i, j or j, i):

    incomplete[h, e] = score[h, e] + log Σ_k exp(complete[i, k] + complete[j, k + 1]),  i ≤ k < j
                                an arc from h to e, over two halves that meet behind k
    complete[h, e] = log Σ_k exp(incomplete[h, k] + complete[k, e]),  k between h and e, not h
                                all words of the span descend from h, whose last child there is k
    log Z = log Σ_r exp(score[0, r] + complete[r, 1] + complete[r, n])

Marginals are derivatives of log Z by scores, passed back through the same steps: the posterior of
an item is shared among the summands of its sum, in proportion to them.
"""

from typing import Any

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Longs

LOG_ZERO = -1e30
"""Stands for log 0: sums of few of these stay finite."""
UNDERFLOW = 1e-250
"""Sums of products below this may lose digits: doubles end at 1e-308."""
NEGLIGIBLE = 1e-12
"""Items below this posterior pass nothing on."""


@compiled()
def bottom_up(heads: Longs) -> Any:
    """Return the words from 1 on, the deepest first, from left to right where equally deep."""
    n = len(heads)
    depth = np.zeros(n, np.int64)
    for m in range(n):
        up = heads[m]
        while up > 0:
            depth[m] += 1
            up = heads[up - 1]
    return 1 + np.argsort(-depth, kind="mergesort")


@compiled(helper=True)
def _log_add(a: float, b: float) -> Any:
    """Compute log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a + np.log1p(np.exp(b - a)) if b > a - 40 else a


@compiled()
def inside(score: Doubles) -> Any:
    """Compute incomplete and complete items, and log Z, by the sums in the module's docstring."""
    n = len(score) - 1
    incomplete, complete = np.full((n + 1, n + 1), LOG_ZERO), np.full((n + 1, n + 1), LOG_ZERO)
    for i in range(1, n + 1):
        complete[i, i] = 0.0
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            # both arcs between i and j, over the same two halves
            largest = LOG_ZERO
            for k in range(i, j):
                largest = max(largest, complete[i, k] + complete[j, k + 1])
            total = 0.0
            for k in range(i, j):
                total += np.exp(complete[i, k] + complete[j, k + 1] - largest)
            joined = largest + np.log(total)
            incomplete[i, j], incomplete[j, i] = joined + score[i, j], joined + score[j, i]
            # a head at either end
            for head, end, step in ((i, j, 1), (j, i, -1)):
                largest = LOG_ZERO
                for k in range(head + step, end + step, step):
                    largest = max(largest, incomplete[head, k] + complete[k, end])
                total = 0.0
                for k in range(head + step, end + step, step):
                    total += np.exp(incomplete[head, k] + complete[k, end] - largest)
                complete[head, end] = largest + np.log(total)
    log_z = LOG_ZERO
    for root in range(1, n + 1):
        log_z = _log_add(log_z, score[0, root] + complete[root, 1] + complete[root, n])
    return incomplete, complete, log_z


@compiled()
def marginals(score: Doubles) -> Any:
    """Return the posterior of every arc under p(tree) ∝ exp of its scores' sum; and log Z."""
    posterior, log_z = marginals_by_products(score)
    if np.isnan(log_z):
        posterior, log_z = marginals_by_logs(score)
    return posterior, log_z


@compiled()
def marginals_by_logs(score: Doubles) -> Any:
    """Compute what `marginals` returns by sums of logs, whatever the scores."""
    n = len(score) - 1
    incomplete, complete, log_z = inside(score)
    p_incomplete, p_complete = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    result = np.zeros((n + 1, n + 1))
    # the root's arcs, each with the two complete items beside the root
    for root in range(1, n + 1):
        share = np.exp(score[0, root] + complete[root, 1] + complete[root, n] - log_z)
        result[0, root] = share
        p_complete[root, 1] += share
        p_complete[root, n] += share
    for width in range(n - 1, 0, -1):
        for i in range(1, n - width + 1):
            j = i + width
            # complete items, whose posterior is known by now, to what they are made of
            for head, end, step in ((i, j, 1), (j, i, -1)):
                above = p_complete[head, end]
                if above < NEGLIGIBLE:
                    continue
                for k in range(head + step, end + step, step):
                    share = above * np.exp(
                        incomplete[head, k] + complete[k, end] - complete[head, end]
                    )
                    p_incomplete[head, k] += share
                    p_complete[k, end] += share
            # incomplete items: an arc each, and the two halves below it
            result[i, j], result[j, i] = p_incomplete[i, j], p_incomplete[j, i]
            above = p_incomplete[i, j] + p_incomplete[j, i]
            if above < NEGLIGIBLE:
                continue
            joined = incomplete[i, j] - score[i, j]
            for k in range(i, j):
                share = above * np.exp(complete[i, k] + complete[j, k + 1] - joined)
                p_complete[i, k] += share
                p_complete[j, k + 1] += share
    return result, log_z


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def marginals_by_products(score: Doubles) -> Any:
    """Compute what `marginals` returns without logs, three times as fast; NaN for log Z where
    numbers get too small.

    Scores count from the best one of every word: exp of them is at most 1. `complete_t[j, i]` is
    complete[i, j], so that every sum runs along two rows.
    """
    # the sums of the module's docstring, of exp of scores
    n = len(score) - 1
    weight, best = _weights(score)
    joined, incomplete = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    complete, complete_t = np.eye(n + 1), np.eye(n + 1)
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            joined[i, j] = _dot(complete[i, i:j], complete[j, i + 1 : j + 1])
            incomplete[i, j] = joined[i, j] * weight[i, j]
            incomplete[j, i] = joined[i, j] * weight[j, i]
            complete[i, j] = _dot(incomplete[i, i + 1 : j + 1], complete_t[j, i + 1 : j + 1])
            complete[j, i] = _dot(incomplete[j, i:j], complete_t[i, i:j])
            complete_t[j, i], complete_t[i, j] = complete[i, j], complete[j, i]
    # Z, and the posteriors of the root's arcs
    roots = weight[0, 1:] * complete[1:, 1] * complete[1:, n]
    z = roots.sum()
    result = np.zeros((n + 1, n + 1))
    if not UNDERFLOW < z < 1 / UNDERFLOW:
        return result, np.nan
    result[0, 1:] = roots / z
    # from the widest items down, posteriors of items to those that they are made of
    p_incomplete = np.zeros_like(complete)
    p_complete, p_complete_t = np.zeros_like(complete), np.zeros_like(complete)
    p_complete[1:, 1] += result[0, 1:]
    p_complete[1:, n] += result[0, 1:]
    for width in range(n - 1, 0, -1):
        for i in range(1, n - width + 1):
            j = i + width
            right, left = slice(i + 1, j + 1), slice(i, j)
            # complete[i, j], then complete[j, i]
            in_range = _distribute(
                p_complete[i, j] + p_complete_t[j, i],
                complete[i, j],
                incomplete[i, right],
                complete_t[j, right],
                p_incomplete[i, right],
                p_complete_t[j, right],
            )
            in_range &= _distribute(
                p_complete[j, i] + p_complete_t[i, j],
                complete[j, i],
                incomplete[j, left],
                complete_t[i, left],
                p_incomplete[j, left],
                p_complete_t[i, left],
            )
            # both arcs, over the same two halves
            result[i, j], result[j, i] = p_incomplete[i, j], p_incomplete[j, i]
            in_range &= _distribute(
                p_incomplete[i, j] + p_incomplete[j, i],
                joined[i, j],
                complete[i, left],
                complete[j, right],
                p_complete[i, left],
                p_complete[j, right],
            )
            if not in_range:
                return result, np.nan
    return result, best + np.log(z)


@compiled(helper=True)
def _weights(score: Doubles) -> Any:
    """Return exp of scores, counted from the best score of every word, and the sum of these."""
    n = len(score) - 1
    weight, total = np.zeros((n + 1, n + 1)), 0.0
    for m in range(1, n + 1):
        best = score[0, m]
        for h in range(1, n + 1):
            if h != m:
                best = max(best, score[h, m])
        total += best
        for h in range(n + 1):
            if h != m:
                weight[h, m] = np.exp(score[h, m] - best)
    return weight, total


@compiled(helper=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _dot(a: Doubles, b: Doubles) -> float:
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled(helper=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _distribute(
    posterior: float, total: float, a: Doubles, b: Doubles, p_a: Doubles, p_b: Doubles
) -> bool:
    """Share the posterior of an item among the pairs that it sums up: p_k = posterior a_k b_k /
    total, where total = a · b. Return False if the total is too small for that.
    """
    if posterior < NEGLIGIBLE:
        return True
    scale = posterior / total
    for k in range(len(a)):
        share = scale * a[k] * b[k]
        p_a[k] += share
        p_b[k] += share
    return total > UNDERFLOW


@compiled()
def best_tree(score: Doubles) -> Any:
    """Find the projective tree with the largest sum of scores.

    The recursion is that of the sums, with the largest summand in place of the sum; the k of every
    item is remembered.

    Returns:
        The heads: element m − 1 is the head of word m
    """
    n = len(score) - 1
    incomplete, complete = np.full((n + 1, n + 1), LOG_ZERO), np.full((n + 1, n + 1), LOG_ZERO)
    split = np.zeros((n + 1, n + 1), np.int64)
    arc_split = np.zeros((n + 1, n + 1), np.int64)
    for i in range(1, n + 1):
        complete[i, i] = 0.0
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            largest = 2 * LOG_ZERO
            for k in range(i, j):
                value = complete[i, k] + complete[j, k + 1]
                if value > largest:
                    largest, arc_split[i, j] = value, k
            incomplete[i, j], incomplete[j, i] = largest + score[i, j], largest + score[j, i]
            for head, end, step in ((i, j, 1), (j, i, -1)):
                largest = 2 * LOG_ZERO
                for k in range(head + step, end + step, step):
                    value = incomplete[head, k] + complete[k, end]
                    if value > largest:
                        largest, split[head, end] = value, k
                complete[head, end] = largest
    # the root's word
    root, largest = 1, 2 * LOG_ZERO
    for r in range(1, n + 1):
        value = score[0, r] + complete[r, 1] + complete[r, n]
        if value > largest:
            largest, root = value, r
    return _heads_of(root, split, arc_split)


@compiled(helper=True)
def _heads_of(root: int, split: Longs, arc_split: Longs) -> Any:
    """Follow the best choices from the root down, and return the heads."""
    n = len(split) - 1
    heads = np.zeros(n, np.int64)
    stack = [(root, 1), (root, n)]
    while stack:
        head, end = stack.pop()
        if head == end:
            continue
        k = split[head, end]
        heads[k - 1] = head
        low, high = min(head, k), max(head, k)
        middle = arc_split[low, high]
        stack.append((k, end))
        stack.append((low, middle))
        stack.append((high, middle + 1))
    return heads
