"""Ridge regression whose penalty is chosen by cross-validation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpcfg.base.errors import TrainingError

Doubles = NDArray[np.float64]

PENALTIES = tuple(10.0**exponent for exponent in np.arange(-3, 4.5, 0.5))
FOLDS = 10


@dataclass(frozen=True, eq=False)
class Ridge:
    """y = intercept + weights · (x − mean) / scale."""

    mean: Doubles
    scale: Doubles
    weights: Doubles
    intercept: float
    penalty: float

    def predict(self, rows: Doubles) -> Doubles:
        """Return the value of every row, (n,)."""
        result: Doubles = self.intercept + ((rows - self.mean) / self.scale) @ self.weights
        return result


def fit(rows: Doubles, values: Doubles, penalty: float) -> Ridge:
    """Minimise |values − predictions|² + penalty |weights|², columns scaled to variance one."""
    mean, scale = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    standard = (rows - mean) / scale
    intercept = float(values.mean())
    normal = standard.T @ standard + penalty * np.eye(rows.shape[1])
    weights = np.linalg.solve(normal, standard.T @ (values - intercept))
    return Ridge(mean, scale, weights, intercept, penalty)


def fit_by_folds(rows: Doubles, values: Doubles) -> Ridge:
    """Fit with the penalty whose squared error over held-out folds is least.

    Row k is in fold k mod 10, so that data sets one behind the other are all in every fold.
    """
    if len(rows) < FOLDS:
        raise TrainingError(
            f"expected {FOLDS} pairs or more to learn from, got {len(rows)}: give more pairs"
        )
    best = min(PENALTIES, key=lambda penalty: (held_out_error(rows, values, penalty), penalty))
    return fit(rows, values, best)


def held_out_error(rows: Doubles, values: Doubles, penalty: float) -> float:
    """Return the sum of squared errors over rows, each predicted from the folds it is not in."""
    fold = np.arange(len(rows)) % FOLDS
    errors = np.empty(len(rows))
    for k in range(FOLDS):
        held = fold == k
        errors[held] = fit(rows[~held], values[~held], penalty).predict(rows[held]) - values[held]
    return float(errors @ errors)
