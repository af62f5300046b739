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
INITIAL_F = 0.5
"""The bias of f in the beginning, so that φ is about ¾: this much of c stays at every word."""


def initial_bias(layer: int) -> Singles:
    """Return the biases with which learning begins."""
    bias = np.zeros((2, 3, layer // 2), np.float32)
    bias[:, 1] = INITIAL_F
    return bias.reshape(-1)


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def forward(gates: Singles, first: Longs, length: Longs) -> Any:
    """Compute c and y of all words of all sentences.

    Args:
        gates: z, f and o of the direction to the right, then of that to the left, side by side
        first: the row of every sentence's first word
        length: the number of every sentence's words

    Returns:
        c and y, the two directions side by side; rows of no word stay 0
    """
    width = gates.shape[1] // 6
    c = np.zeros((len(gates), 2 * width), np.float32)
    y = np.zeros((len(gates), 2 * width), np.float32)
    for s in range(len(first)):
        for side in range(2):
            # from the first word on, or from the last one back
            step = 1 - 2 * side
            t = first[s] + side * (length[s] - 1)
            block, out = 3 * width * side, width * side
            for i in range(length[s]):
                for a in range(width):
                    phi = HALF + HALF * gates[t, block + width + a]
                    before = c[t - step, out + a] if i > 0 else np.float32(0)
                    value = phi * before + (ONE - phi) * gates[t, block + a]
                    c[t, out + a] = value
                    y[t, out + a] = (HALF + HALF * gates[t, block + 2 * width + a]) * value
                t += step
    return c, y


@compiled(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def backward(gates: Singles, c: Singles, d_y: Singles, first: Longs, length: Longs) -> Any:
    """Compute the derivatives by z, f and o before tanh, given d_y, those by y.

    With d_c the derivative by c_t, from y_t and from c_{t+1}:

        d_c = ω_t d_y + φ_{t+1} d_c of t + 1      d_z = d_c (1 − φ) (1 − z²)
        d_f = d_c (c_{t−1} − z) / 2 (1 − f²)      d_o = d_y c_t / 2 (1 − o²)
    """
    width = gates.shape[1] // 6
    d_gates = np.zeros_like(gates)
    d_c_next = np.zeros(width, np.float32)
    for s in range(len(first)):
        for side in range(2):
            # against the direction of reading
            step = 1 - 2 * side
            t = first[s] + (1 - side) * (length[s] - 1)
            block, out = 3 * width * side, width * side
            d_c_next[:] = 0
            for i in range(length[s]):
                has_before = i < length[s] - 1
                for a in range(width):
                    z, f = gates[t, block + a], gates[t, block + width + a]
                    o = gates[t, block + 2 * width + a]
                    phi, d_out = HALF + HALF * f, d_y[t, out + a]
                    d_c = d_out * (HALF + HALF * o) + d_c_next[a]
                    before = c[t - step, out + a] if has_before else np.float32(0)
                    d_gates[t, block + a] = d_c * (ONE - phi) * (ONE - z * z)
                    d_gates[t, block + width + a] = d_c * (before - z) * HALF * (ONE - f * f)
                    d_gates[t, block + 2 * width + a] = d_out * c[t, out + a] * HALF * (ONE - o * o)
                    d_c_next[a] = d_c * phi
                t -= step
    return d_gates
