"""The k best projective trees of arc scores, in order (Huang and Chiang 2005, over Eisner's items).

Every item keeps its k best derivations, sorted. Those of a new item are pairs of derivations of its
two parts, for every split; a heap holds the next pair of each kind: behind the pair of ranks (a, b)
come (a, b + 1) and, from b = 0, (a + 1, 0), so that no pair comes twice.
"""

import heapq
from typing import Any

import numpy as np
from numba import njit

from lpcfg.grammar.tables import Doubles, Ints, Longs

LEAST = -1e15
"""Trees of scores below have an arc that was ruled out."""


@njit(cache=True, nogil=True)
def best_pairs(
    left: Doubles,
    n_left: Longs,
    right: Doubles,
    n_right: Longs,
    constant: Doubles,
    values: Doubles,
    back: Ints,
) -> int:
    """Find the best sums of one value on the left, one on the right and a constant, sorted.

    Every option is a row of sorted values on either side, of which the first n count. Write the
    sums into `values`, and where they come from into `back`: option, rank left, rank right. Return
    how many there are.
    """
    heap = [(0.0, 0, 0, 0) for _ in range(0)]
    for option in range(len(constant)):
        if n_left[option] > 0 and n_right[option] > 0 and constant[option] > LEAST:
            total = left[option, 0] + right[option, 0] + constant[option]
            heap.append((-total, option, 0, 0))
    heapq.heapify(heap)
    count = 0
    while len(heap) > 0 and count < len(values):
        total, option, a, b = heapq.heappop(heap)
        values[count] = -total
        back[count] = (option, a, b)
        count += 1
        base = constant[option]
        if b + 1 < n_right[option]:
            total = left[option, a] + right[option, b + 1] + base
            heapq.heappush(heap, (-total, option, a, b + 1))
        if b == 0 and a + 1 < n_left[option]:
            total = left[option, a + 1] + right[option, 0] + base
            heapq.heappush(heap, (-total, option, a + 1, 0))
    return count


@njit(cache=True, nogil=True)
def k_best_trees(score: Doubles, k: int) -> Any:
    """Find the heads of up to k trees, a row each, best first, and the sums of their scores."""
    n = len(score) - 1
    done, joint = np.zeros((n + 1, n + 1, k)), np.zeros((n + 1, n + 1, k))
    n_done, n_joint = np.zeros((n + 1, n + 1), np.int64), np.zeros((n + 1, n + 1), np.int64)
    back_done = np.zeros((n + 1, n + 1, k, 3), np.int32)
    back_joint = np.zeros((n + 1, n + 1, k, 3), np.int32)
    nothing = np.zeros(n)
    for i in range(1, n + 1):
        n_done[i, i] = 1
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            n_joint[i, j] = best_pairs(
                *(done[i, i:j], n_done[i, i:j], done[j, i + 1 : j + 1], n_done[j, i + 1 : j + 1]),
                *(nothing[:width], joint[i, j], back_joint[i, j]),
            )
            after, before = slice(i + 1, j + 1), slice(i, j)
            n_done[i, j] = best_pairs(
                *(joint[i, after], n_joint[i, after], done[after, j], n_done[after, j]),
                *(score[i, after], done[i, j], back_done[i, j]),
            )
            n_done[j, i] = best_pairs(
                *(joint[before, j], n_joint[before, j], done[before, i], n_done[before, i]),
                *(score[j, before], done[j, i], back_done[j, i]),
            )
    heads, sums, back = best_roots(done, n_done, score[0])
    for row in range(len(sums)):
        _follow(heads[row], back[row], back_done, back_joint)
    return heads, sums


@njit(cache=True, nogil=True)
def best_roots(done: Doubles, n_done: Longs, score: Doubles) -> Any:
    """Find the best whole trees: rows of zeros for their heads, sums, and root − 1 with the ranks
    of both sides.
    """
    k, n = done.shape[2], len(score) - 1
    sums, back = np.zeros(k), np.zeros((k, 3), np.int32)
    count = best_pairs(
        *(done[1:, 1], n_done[1:, 1], done[1:, n], n_done[1:, n]),
        *(score[1:], sums, back),
    )
    return np.zeros((count, n), np.int64), sums[:count], back[:count]


@njit(cache=True, nogil=True)
def _follow(heads: Longs, best: Ints, back_done: Ints, back_joint: Ints) -> None:
    """Write the heads of a tree, from its root down."""
    root, n = best[0] + 1, len(heads)
    stack = [(root, 1, int(best[1])), (root, n, int(best[2]))]
    while stack:
        head, end, rank = stack.pop()
        if head == end:
            continue
        option, inner, outer = back_done[head, end, rank]
        m = (head + 1 if end > head else end) + option
        heads[m - 1] = head
        low, high = min(head, m), max(head, m)
        split, x, y = back_joint[low, high, inner]
        stack.append((m, end, int(outer)))
        stack.append((low, low + split, int(x)))
        stack.append((high, low + split + 1, int(y)))
