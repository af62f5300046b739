"""A layer that reads a sentence in both directions, with gates (Bradbury et al. 2017, QRNN).

With z, f, o of every word the layer's three blocks for a direction, all after tanh, and gates
φ = (1 + f) / 2 and ω = (1 + o) / 2, which are logistic:

    c_t = φ_t c_{t−1} + (1 − φ_t) z_t          c before the first word is 0
    y_t = ω_t c_t

so every number of y is between −1 and 1. The gates depend on the words alone, not on c: one
multiplication computes them for all sentences of a batch, and what is left takes no time.
"""

from typing import Any

import numpy as np

from lpcfg.base.jit import compiled
from lpcfg.grammar.tables import Longs, Singles

HALF, ONE = np.float32(0.5), np.float32(1)
FIRST_KEPT = 0.5
"""The bias of f in the beginning: three quarters of c stay from one word to the next."""


def first_bias(layer: int) -> Singles:
    """Return the biases with which learning begins."""
    bias = np.zeros((2, 3, layer // 2), np.float32)
    bias[:, 1] = FIRST_KEPT
    return bias.reshape(-1)


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def read(gates: Singles, first: Longs, length: Longs) -> Any:
    """Compute c and y of all words of all sentences; rows of no word stay 0.

    Columns are z, f, o to the right, then z, f, o to the left.
    """
    width = gates.shape[1] // 6
    c = np.zeros((len(gates), 2 * width), np.float32)
    y = np.zeros((len(gates), 2 * width), np.float32)
    for s in range(len(first)):
        for side in range(2):
            step = 1 - 2 * side
            t = first[s] + side * (length[s] - 1)
            block, out = 3 * width * side, width * side
            for i in range(length[s]):
                for a in range(width):
                    kept = HALF + HALF * gates[t, block + width + a]
                    before = c[t - step, out + a] if i > 0 else np.float32(0)
                    value = kept * before + (ONE - kept) * gates[t, block + a]
                    c[t, out + a] = value
                    y[t, out + a] = (HALF + HALF * gates[t, block + 2 * width + a]) * value
                t += step
    return c, y


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def read_back(gates: Singles, c: Singles, by_y: Singles, first: Longs, length: Longs) -> Any:
    """Compute the derivatives by z, f and o before tanh, given those by y."""
    width = gates.shape[1] // 6
    result = np.zeros_like(gates)
    carried = np.zeros(width, np.float32)
    for s in range(len(first)):
        for side in range(2):
            step = 1 - 2 * side
            t = first[s] + (1 - side) * (length[s] - 1)
            block, out = 3 * width * side, width * side
            carried[:] = 0
            for i in range(length[s]):
                has_before = i < length[s] - 1
                for a in range(width):
                    z, f = gates[t, block + a], gates[t, block + width + a]
                    o = gates[t, block + 2 * width + a]
                    kept, by = HALF + HALF * f, by_y[t, out + a]
                    by_c = by * (HALF + HALF * o) + carried[a]
                    before = c[t - step, out + a] if has_before else np.float32(0)
                    result[t, block + a] = by_c * (ONE - kept) * (ONE - z * z)
                    result[t, block + width + a] = by_c * (before - z) * HALF * (ONE - f * f)
                    result[t, block + 2 * width + a] = by * c[t, out + a] * HALF * (ONE - o * o)
                    carried[a] = by_c * kept
                t -= step
    return result
