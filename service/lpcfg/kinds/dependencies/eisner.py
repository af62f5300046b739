"""Projective trees by dynamic programming (Eisner 1996): sums, marginals, the best.

Scores are of arcs: score[h, m] of the arc from h to m, words from 1, h = 0 for the root; a tree has
one root. Items of a span of words i … j:

    open[i, j], open[j, i]      i and j are joined by an arc from the first index to the second
    done[i, j], done[j, i]      all words of the span descend from the first index's

Sums are in logs. Marginals are derivatives of log Z by scores, passed back through the same steps.
"""

from typing import Any

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Doubles, Longs

LEAST = -1e30
"""Stands for log 0: sums of few of these stay finite."""
SMALLEST = 1e-250
"""Products below this may lose digits: doubles end at 1e-308."""
LIKELY = 1e-12
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
def _plus(a: float, b: float) -> Any:
    """Compute log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a + np.log1p(np.exp(b - a)) if b > a - 40 else a


@compiled()
def inside(score: Doubles) -> Any:
    """Compute open, done and log Z."""
    n = len(score) - 1
    opened, done = np.full((n + 1, n + 1), LEAST), np.full((n + 1, n + 1), LEAST)
    for i in range(1, n + 1):
        done[i, i] = 0.0
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            most = LEAST
            for k in range(i, j):
                most = max(most, done[i, k] + done[j, k + 1])
            total = 0.0
            for k in range(i, j):
                total += np.exp(done[i, k] + done[j, k + 1] - most)
            both = most + np.log(total)
            opened[i, j], opened[j, i] = both + score[i, j], both + score[j, i]
            for head, end, step in ((i, j, 1), (j, i, -1)):
                most = LEAST
                for k in range(head + step, end + step, step):
                    most = max(most, opened[head, k] + done[k, end])
                total = 0.0
                for k in range(head + step, end + step, step):
                    total += np.exp(opened[head, k] + done[k, end] - most)
                done[head, end] = most + np.log(total)
    log_z = LEAST
    for root in range(1, n + 1):
        log_z = _plus(log_z, score[0, root] + done[root, 1] + done[root, n])
    return opened, done, log_z


@compiled()
def marginals(score: Doubles) -> Any:
    """Return the posterior of every arc under p(tree) ∝ exp of its scores' sum; and log Z."""
    posterior, log_z = by_products(score)
    if np.isnan(log_z):
        posterior, log_z = by_logs(score)
    return posterior, log_z


@compiled()
def by_logs(score: Doubles) -> Any:
    """Compute what `marginals` returns, whatever the scores."""
    n = len(score) - 1
    opened, done, log_z = inside(score)
    to_open, to_done = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    result = np.zeros((n + 1, n + 1))
    for root in range(1, n + 1):
        share = np.exp(score[0, root] + done[root, 1] + done[root, n] - log_z)
        result[0, root] = share
        to_done[root, 1] += share
        to_done[root, n] += share
    for width in range(n - 1, 0, -1):
        for i in range(1, n - width + 1):
            j = i + width
            for head, end, step in ((i, j, 1), (j, i, -1)):
                above = to_done[head, end]
                if above < LIKELY:
                    continue
                for k in range(head + step, end + step, step):
                    share = above * np.exp(opened[head, k] + done[k, end] - done[head, end])
                    to_open[head, k] += share
                    to_done[k, end] += share
            result[i, j], result[j, i] = to_open[i, j], to_open[j, i]
            above = to_open[i, j] + to_open[j, i]
            if above < LIKELY:
                continue
            both = opened[i, j] - score[i, j]
            for k in range(i, j):
                share = above * np.exp(done[i, k] + done[j, k + 1] - both)
                to_done[i, k] += share
                to_done[j, k + 1] += share
    return result, log_z


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def by_products(score: Doubles) -> Any:
    """Compute what `marginals` returns without logs, three times as fast; NaN for log Z where
    numbers get too small.

    Scores count from the best one of every word: exp of them is at most 1. `done_to[j, i]` is
    done[i, j], so that every sum runs along two rows.
    """
    n = len(score) - 1
    weight, best = _weights(score)
    both, opened = np.zeros((n + 1, n + 1)), np.zeros((n + 1, n + 1))
    done, done_to = np.eye(n + 1), np.eye(n + 1)
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            both[i, j] = _product(done[i, i:j], done[j, i + 1 : j + 1])
            opened[i, j], opened[j, i] = both[i, j] * weight[i, j], both[i, j] * weight[j, i]
            done[i, j] = _product(opened[i, i + 1 : j + 1], done_to[j, i + 1 : j + 1])
            done[j, i] = _product(opened[j, i:j], done_to[i, i:j])
            done_to[j, i], done_to[i, j] = done[i, j], done[j, i]
    roots = weight[0, 1:] * done[1:, 1] * done[1:, n]
    z = roots.sum()
    result = np.zeros((n + 1, n + 1))
    if not SMALLEST < z < 1 / SMALLEST:
        return result, np.nan
    result[0, 1:] = roots / z
    to_open, to_done, to_done_to = np.zeros_like(done), np.zeros_like(done), np.zeros_like(done)
    to_done[1:, 1] += result[0, 1:]
    to_done[1:, n] += result[0, 1:]
    for width in range(n - 1, 0, -1):
        for i in range(1, n - width + 1):
            j = i + width
            right, left = slice(i + 1, j + 1), slice(i, j)
            enough = _share(
                to_done[i, j] + to_done_to[j, i],
                done[i, j],
                opened[i, right],
                done_to[j, right],
                to_open[i, right],
                to_done_to[j, right],
            )
            enough &= _share(
                to_done[j, i] + to_done_to[i, j],
                done[j, i],
                opened[j, left],
                done_to[i, left],
                to_open[j, left],
                to_done_to[i, left],
            )
            result[i, j], result[j, i] = to_open[i, j], to_open[j, i]
            enough &= _share(
                to_open[i, j] + to_open[j, i],
                both[i, j],
                done[i, left],
                done[j, right],
                to_done[i, left],
                to_done[j, right],
            )
            if not enough:
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
def _product(a: Doubles, b: Doubles) -> float:
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled(helper=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _share(
    posterior: float, total: float, a: Doubles, b: Doubles, to_a: Doubles, to_b: Doubles
) -> bool:
    """Share the posterior of an item among the pairs that it sums up, total = a · b.

    Return False if the total is too small for that.
    """
    if posterior < LIKELY:
        return True
    each = posterior / total
    for k in range(len(a)):
        share = each * a[k] * b[k]
        to_a[k] += share
        to_b[k] += share
    return total > SMALLEST


@compiled()
def best_tree(score: Doubles) -> Any:
    """Find the heads of the projective tree with the largest sum of scores; element m − 1 is the
    head of word m.
    """
    n = len(score) - 1
    opened, done = np.full((n + 1, n + 1), LEAST), np.full((n + 1, n + 1), LEAST)
    split = np.zeros((n + 1, n + 1), np.int64)
    joint = np.zeros((n + 1, n + 1), np.int64)
    for i in range(1, n + 1):
        done[i, i] = 0.0
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            most = 2 * LEAST
            for k in range(i, j):
                value = done[i, k] + done[j, k + 1]
                if value > most:
                    most, joint[i, j] = value, k
            opened[i, j], opened[j, i] = most + score[i, j], most + score[j, i]
            for head, end, step in ((i, j, 1), (j, i, -1)):
                most = 2 * LEAST
                for k in range(head + step, end + step, step):
                    value = opened[head, k] + done[k, end]
                    if value > most:
                        most, split[head, end] = value, k
                done[head, end] = most
    root, most = 1, 2 * LEAST
    for r in range(1, n + 1):
        value = score[0, r] + done[r, 1] + done[r, n]
        if value > most:
            most, root = value, r
    return _followed(root, split, joint)


@compiled(helper=True)
def _followed(root: int, split: Longs, joint: Longs) -> Any:
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
        at = joint[low, high]
        stack.append((k, end))
        stack.append((low, at))
        stack.append((high, at + 1))
    return heads
