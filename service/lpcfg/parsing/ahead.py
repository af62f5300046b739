"""Compile kernels in two processes where none are kept yet: one half each, in half the time.

Numba compiles under one lock, so threads would not help. The process that parses its first sentence
compiles the kernels for charts and tensors, and a second process those that rescore and read them.
"""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess

import numpy as np

from lpcfg.cores import cores
from lpcfg.engine.pruned.coarse import Pruned
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.grammar.tables import Grammar
from lpcfg.processes import WithoutMain, end_with_parent

LONGEST_WAIT = 60.0
"""Seconds to wait for the second process; it takes 10."""


class SecondProcess:
    """A process beside this one, which compiles what is needed later. There is one at most."""

    def __init__(self) -> None:
        self.process: BaseProcess | None = None
        self._begun = False

    def begin(self, work: Callable[[], None]) -> None:
        """Start the process, once, unless there is no core for it, or this is a worker itself."""
        if self._begun or cores() < 2 or multiprocessing.parent_process() is not None:
            return
        self._begun = True
        self.process = WithoutMain().Process(target=_alone, args=(work,), daemon=True)
        self.process.start()

    def wait(self) -> None:
        """Wait for the end of the process, if there is one. What it left is compiled here."""
        if (process := self.process) is not None:  # several threads may wait
            process.join(LONGEST_WAIT)
            self.process = None


def _alone(work: Callable[[], None]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its parent, without a word
    end_with_parent()
    work()


def two_words(grammar: Grammar) -> Pruned:
    """Return the chart of two words below one rule, with which kernels can be called."""
    is_tag = grammar.rules[:, 1:] >= grammar.n_internal
    rule = int(is_tag.all(axis=1).argmax())
    parent, left, right = grammar.rules[rule]
    chart = Chart(
        symbol=np.array([left, right, parent], np.int32),
        start=np.array([0, 1, 0], np.int32),
        end=np.array([1, 2, 2], np.int32),
        entry=np.array([0, 0, -1], np.int32),
        inside=np.ones(3),
        edge_start=np.array([0, 0, 0, 1]),
        rule=np.array([rule], np.int32),
        left=np.array([0], np.int32),
        right=np.array([1], np.int32),
        value=np.ones(1),
    )
    return Pruned(2, chart, np.ones(3), np.ones(1), 0.0, 0.0)
