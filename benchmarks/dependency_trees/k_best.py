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
def k_best_trees(score: Doubles, k: int) -> Any:
    """Find the heads of up to k trees, a row each, best first, and the sums of their scores."""
    n = len(score) - 1
    done = np.zeros((n + 1, n + 1, k))
    joint = np.zeros((n + 1, n + 1, k))
    n_done, n_joint = np.zeros((n + 1, n + 1), np.int64), np.zeros((n + 1, n + 1), np.int64)
    back_done = np.zeros((n + 1, n + 1, k, 3), np.int32)
    back_joint = np.zeros((n + 1, n + 1, k, 3), np.int32)
    for i in range(1, n + 1):
        n_done[i, i] = 1
    for width in range(1, n):
        for i in range(1, n - width + 1):
            j = i + width
            heap = [(0.0, 0, 0, 0) for _ in range(0)]
            for split in range(i, j):
                if n_done[i, split] > 0 and n_done[j, split + 1] > 0:
                    value = done[i, split, 0] + done[j, split + 1, 0]
                    heap.append((-value, split, 0, 0))
            heapq.heapify(heap)
            count = 0
            while len(heap) > 0 and count < k:
                value, split, a, b = heapq.heappop(heap)
                joint[i, j, count] = -value
                back_joint[i, j, count] = (split, a, b)
                count += 1
                left, right = done[i, split], done[j, split + 1]
                if b + 1 < n_done[j, split + 1]:
                    heapq.heappush(heap, (-(left[a] + right[b + 1]), split, a, b + 1))
                if b == 0 and a + 1 < n_done[i, split]:
                    heapq.heappush(heap, (-(left[a + 1] + right[0]), split, a + 1, 0))
            n_joint[i, j] = count
            for head, end in ((i, j), (j, i)):
                n_done[head, end] = _finish(
                    head, end, score, joint, n_joint, done, n_done, back_done
                )
    return _collected(score, k, (done, n_done), back_done, back_joint)


@njit(cache=True, nogil=True)
def _finish(
    head: int,
    end: int,
    score: Doubles,
    joint: Doubles,
    n_joint: Longs,
    done: Doubles,
    n_done: Longs,
    back: Ints,
) -> int:
    """Find the derivations of a done item: an arc to its farthest modifier, and the words beyond
    it.
    """
    heap = [(0.0, 0, 0, 0) for _ in range(0)]
    step = 1 if end >= head else -1
    for m in range(head + step, end + step, step):
        low, high = min(head, m), max(head, m)
        if n_joint[low, high] > 0 and n_done[m, end] > 0 and score[head, m] > LEAST:
            heap.append((-(joint[low, high, 0] + score[head, m] + done[m, end, 0]), m, 0, 0))
    heapq.heapify(heap)
    count, k = 0, done.shape[2]
    while len(heap) > 0 and count < k:
        value, m, a, b = heapq.heappop(heap)
        done[head, end, count] = -value
        back[head, end, count] = (m, a, b)
        count += 1
        low, high = min(head, m), max(head, m)
        arc = score[head, m]
        inner, outer = joint[low, high], done[m, end]
        if b + 1 < n_done[m, end]:
            heapq.heappush(heap, (-(inner[a] + arc + outer[b + 1]), m, a, b + 1))
        if b == 0 and a + 1 < n_joint[low, high]:
            heapq.heappush(heap, (-(inner[a + 1] + arc + outer[0]), m, a + 1, 0))
    return count


@njit(cache=True, nogil=True)
def _collected(score: Doubles, k: int, finished: Any, back_done: Any, back_joint: Any) -> Any:
    """Return the best derivations over all roots, followed down to their arcs."""
    done, n_done = finished
    n = len(score) - 1
    heap = [(0.0, 0, 0, 0) for _ in range(0)]
    for root in range(1, n + 1):
        if n_done[root, 1] > 0 and n_done[root, n] > 0 and score[0, root] > LEAST:
            value = score[0, root] + done[root, 1, 0] + done[root, n, 0]
            heap.append((-value, root, 0, 0))
    heapq.heapify(heap)
    heads, sums = np.zeros((k, n), np.int64), np.zeros(k)
    count = 0
    while len(heap) > 0 and count < k:
        value, root, a, b = heapq.heappop(heap)
        sums[count] = -value
        _follow(heads[count], root, a, b, back_done, back_joint)
        count += 1
        arc, left, right = score[0, root], done[root, 1], done[root, n]
        if b + 1 < n_done[root, n]:
            heapq.heappush(heap, (-(arc + left[a] + right[b + 1]), root, a, b + 1))
        if b == 0 and a + 1 < n_done[root, 1]:
            heapq.heappush(heap, (-(arc + left[a + 1] + right[0]), root, a + 1, 0))
    return heads[:count], sums[:count]


@njit(cache=True, nogil=True)
def _follow(heads: Longs, root: int, a: int, b: int, back_done: Any, back_joint: Any) -> None:
    n = len(heads)
    stack = [(root, 1, a), (root, n, b)]
    while stack:
        head, end, rank = stack.pop()
        if head == end:
            continue
        m, inner, outer = back_done[head, end, rank]
        heads[m - 1] = head
        low, high = min(head, m), max(head, m)
        split, x, y = back_joint[low, high, inner]
        stack.append((int(m), int(end), int(outer)))
        stack.append((int(low), int(split), int(x)))
        stack.append((int(high), int(split) + 1, int(y)))
