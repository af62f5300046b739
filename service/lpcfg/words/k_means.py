"""k-means on points, for classes of words and for latent states of nodes."""

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float32]
Clusters = NDArray[np.int64]

SAMPLE_PER_CLUSTER = 256
"""Points a cluster is found from: more move its centre by less than 1/16 of its spread."""


def k_means(points: Points, m: int, *, rounds: int, random: np.random.Generator) -> Clusters:
    """Return the cluster of every point, of at most m, numbered without gaps.

    Centres start as k-means++ draws them (Arthur and Vassilvitskii 2007) and move by Lloyd's
    rounds, all on a sample of the points; at the end each point goes to the nearest.
    """
    size = min(len(points), m * SAMPLE_PER_CLUSTER)
    sample = points[np.sort(random.choice(len(points), size, replace=False))]
    centres = _seeded(sample, m, random)
    for _ in range(rounds):
        nearest = _nearest(sample, centres)
        member = np.bincount(nearest, minlength=len(centres))
        one_hot = (nearest == np.arange(len(centres))[:, None]).astype(np.float32)
        sums = one_hot @ sample
        centres = sums[member > 0] / member[member > 0, None].astype(np.float32)
    return np.unique(_nearest(points, centres), return_inverse=True)[1].astype(np.int64)


def _nearest(points: Points, centres: Points) -> Clusters:
    closeness = points @ centres.T - 0.5 * np.einsum("ij,ij->i", centres, centres)
    nearest: Clusters = np.argmax(closeness, axis=1)
    return nearest


def _seeded(points: Points, m: int, random: np.random.Generator) -> Points:
    """Draw at most m of the points, each by its squared distance from those before it."""
    chosen = [int(random.integers(len(points)))]
    distance = np.full(len(points), np.inf)
    while len(chosen) < m:
        gap = points - points[chosen[-1]]
        distance = np.minimum(distance, np.einsum("ij,ij->i", gap, gap, dtype=np.float64))
        total = np.cumsum(distance)
        if total[-1] <= 0:  # there are no other points
            break
        chosen.append(int(np.searchsorted(total, random.random() * total[-1], side="right")))
    return points[chosen]
