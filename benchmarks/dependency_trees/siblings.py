"""Projective trees of second order (McDonald and Pereira 2006): sums, marginals, the k best.

score[h, s, m] is of the arc from h to m where s is the modifier of h between the two that is
nearest to m; s = h stands for none. A tree has one root, of score[0, 0, m]. Items of words i … j:

    done[i, j], done[j, i]      all words of the span descend from the first index's
    open[i, j], open[j, i]      and the second is the outermost modifier of the first
    pair[i, j]                  i and j are neighbouring modifiers of a head outside
"""

from typing import Any

import numpy as np
from benchmarks.dependency_trees.k_best import best_pairs, best_roots
from numba import njit

from lpcfg.grammar.tables import Doubles, Ints, Longs
from lpcfg.kinds.dependencies.eisner import LOG_ZERO


@njit(cache=True, nogil=True)
def _log_sum(values: Doubles) -> Any:
    most = values.max()
    return most + np.log(np.exp(values - most).sum())


@njit(cache=True, nogil=True)
def _openings(score: Doubles, opened: Doubles, pair: Doubles, inner: float, h: int, m: int) -> Any:
    """List the logs of the ways to make open[h, m], by s from h on towards m."""
    if h < m:
        ways = opened[h, h:m] + pair[h:m, m] + score[h, h:m, m]
    else:
        ways = (opened[h, m + 1 : h + 1] + pair[m, m + 1 : h + 1] + score[h, m + 1 : h + 1, m])[
            ::-1
        ].copy()
    ways[0] = inner + score[h, h, m]
    return ways


@njit(cache=True, nogil=True)
def inside(score: Doubles) -> Any:
    """Compute open, pair, done and log Z."""
    n = len(score) - 1
    opened, pair, done = (
        np.full((n + 1, n + 1), LOG_ZERO),
        np.full((n + 1, n + 1), LOG_ZERO),
        np.full((n + 1, n + 1), LOG_ZERO),
    )
    for i in range(1, n + 1):
        done[i, i] = 0.0
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            pair[i, j] = _log_sum(done[i, i:j] + done[j, i + 1 : j + 1])
            opened[i, j] = _log_sum(_openings(score, opened, pair, done[j, i + 1], i, j))
            opened[j, i] = _log_sum(_openings(score, opened, pair, done[i, j - 1], j, i))
            done[i, j] = _log_sum(opened[i, i + 1 : j + 1] + done[i + 1 : j + 1, j])
            done[j, i] = _log_sum(opened[j, i:j] + done[i:j, i])
    log_z = _log_sum(score[0, 0, 1:] + done[1:, 1] + done[1:, n])
    return opened, pair, done, log_z


@njit(cache=True, nogil=True)
def marginals(score: Doubles) -> Any:
    """Return the posterior of every h, s, m under p(tree) ∝ exp of its scores' sum; and log Z."""
    n = len(score) - 1
    opened, pair, done, log_z = inside(score)
    to_open, to_pair, to_done = (
        np.zeros((n + 1, n + 1)),
        np.zeros((n + 1, n + 1)),
        np.zeros((n + 1, n + 1)),
    )
    result = np.zeros(score.shape)
    for root in range(1, n + 1):
        share = np.exp(score[0, 0, root] + done[root, 1] + done[root, n] - log_z)
        result[0, 0, root] = share
        to_done[root, 1] += share
        to_done[root, n] += share
    for width in range(n - 1, 0, -1):
        for i in range(1, n - width + 1):
            j = i + width
            for head, end, step in ((i, j, 1), (j, i, -1)):
                above = to_done[head, end]
                for k in range(head + step, end + step, step):
                    share = above * np.exp(opened[head, k] + done[k, end] - done[head, end])
                    to_open[head, k] += share
                    to_done[k, end] += share
                inner = done[end, head + step]
                ways = _openings(score, opened, pair, inner, head, end)
                shares = to_open[head, end] * np.exp(ways - opened[head, end])
                result[head, head, end] = shares[0]
                to_done[end, head + step] += shares[0]
                for k in range(1, width):
                    s = head + k * step
                    result[head, s, end] = shares[k]
                    to_open[head, s] += shares[k]
                    to_pair[min(s, end), max(s, end)] += shares[k]
            above = to_pair[i, j]
            for k in range(i, j):
                share = above * np.exp(done[i, k] + done[j, k + 1] - pair[i, j])
                to_done[i, k] += share
                to_done[j, k + 1] += share
    return result, log_z


@njit(cache=True, nogil=True)
def k_best_trees(score: Doubles, k: int) -> Any:
    """Find the heads of up to k trees, a row each, best first, and the sums of their scores."""
    n = len(score) - 1
    lists, counts, backs = (
        np.zeros((3, n + 1, n + 1, k)),
        np.zeros((3, n + 1, n + 1), np.int64),
        np.zeros((3, n + 1, n + 1, k, 3), np.int32),
    )
    done, opened, pair = lists
    n_done, n_opened, n_pair = counts
    nothing = np.zeros(n)
    for i in range(1, n + 1):
        n_done[i, i] = n_opened[i, i] = 1  # open[i, i]: no modifier yet
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            after, before = slice(i + 1, j + 1), slice(i, j)
            n_pair[i, j] = best_pairs(
                *(done[i, before], n_done[i, before], done[j, after], n_done[j, after]),
                *(nothing[:width], pair[i, j], backs[2, i, j]),
            )
            # Beside "no modifier yet" stands the span of the new modifier, else a pair.
            right, n_right = pair[before, j].copy(), n_pair[before, j].copy()
            right[0], n_right[0] = done[j, i + 1], n_done[j, i + 1]
            n_opened[i, j] = best_pairs(
                *(opened[i, before], n_opened[i, before], right, n_right),
                *(score[i, before, j], opened[i, j], backs[1, i, j]),
            )
            right, n_right = pair[i, after].copy(), n_pair[i, after].copy()
            right[-1], n_right[-1] = done[i, j - 1], n_done[i, j - 1]
            n_opened[j, i] = best_pairs(
                *(opened[j, after], n_opened[j, after], right, n_right),
                *(score[j, after, i], opened[j, i], backs[1, j, i]),
            )
            n_done[i, j] = best_pairs(
                *(opened[i, after], n_opened[i, after], done[after, j], n_done[after, j]),
                *(nothing[:width], done[i, j], backs[0, i, j]),
            )
            n_done[j, i] = best_pairs(
                *(opened[j, before], n_opened[j, before], done[before, i], n_done[before, i]),
                *(nothing[:width], done[j, i], backs[0, j, i]),
            )
    heads, sums, back = best_roots(done, n_done, score[0, 0])
    for row in range(len(sums)):
        _follow(heads[row], back[row], backs)
    return heads, sums


_DONE, _OPEN, _PAIR = range(3)


@njit(cache=True, nogil=True)
def _follow(heads: Longs, best: Ints, backs: Ints) -> None:
    """Write the heads of a tree, from its root down."""
    root, n = best[0] + 1, len(heads)
    stack = [(_DONE, root, 1, int(best[1])), (_DONE, root, n, int(best[2]))]
    while stack:
        kind, first, last, rank = stack.pop()
        if first == last:
            continue
        low, step = min(first, last), 1 if first < last else -1
        option, a, b = backs[kind, first, last, rank]
        if kind == _PAIR:
            stack.append((_DONE, first, low + option, int(a)))
            stack.append((_DONE, last, low + option + 1, int(b)))
            continue
        # Options count words from the left: of open[h, m] and done[h, e] the head is never m.
        if kind == _DONE:
            m = low + option + (1 if step > 0 else 0)
            stack.append((_OPEN, first, m, int(a)))
            stack.append((_DONE, m, last, int(b)))
            continue
        heads[last - 1] = first
        s = low + option + (0 if step > 0 else 1)
        if s == first:
            stack.append((_DONE, last, first + step, int(b)))
        else:
            stack.append((_OPEN, first, s, int(a)))
            stack.append((_PAIR, min(s, last), max(s, last), int(b)))
