"""Projective trees by dynamic programming (Eisner 1996): sums, marginals, the best.

Scores are of arcs: score[h, m] of the arc from h to m, words from 1, h = 0 for the root; a tree has
one root. Items of a span of words i … j:

    open[i, j], open[j, i]      i and j are joined by an arc from the first index to the second
    done[i, j], done[j, i]      all words of the span descend from the first index's

Sums are in logs. Marginals are derivatives of log Z by scores, passed back through the same steps.
"""

from typing import Any

import numpy as np
from numba import njit

from lpcfg.grammar.tables import Doubles, Longs

LEAST = -1e30
"""Stands for log 0: sums of few of these stay finite."""


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _plus(a: float, b: float) -> Any:
    """Compute log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a + np.log1p(np.exp(b - a)) if b > a - 40 else a


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def marginals(score: Doubles) -> Any:
    """Return the posterior of every arc under p(tree) ∝ exp of its scores' sum; and log Z."""
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
                if above < 1e-12:
                    continue
                for k in range(head + step, end + step, step):
                    share = above * np.exp(opened[head, k] + done[k, end] - done[head, end])
                    to_open[head, k] += share
                    to_done[k, end] += share
            result[i, j], result[j, i] = to_open[i, j], to_open[j, i]
            above = to_open[i, j] + to_open[j, i]
            if above < 1e-12:
                continue
            both = opened[i, j] - score[i, j]
            for k in range(i, j):
                share = above * np.exp(done[i, k] + done[j, k + 1] - both)
                to_done[i, k] += share
                to_done[j, k + 1] += share
    return result, log_z


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
