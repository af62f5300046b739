"""Compile kernels in two processes where none are kept yet: one half each, in half the time.

Numba compiles under one lock, so threads would not help. The process that parses its first sentence
compiles the kernels that run the tensors, guess tags and build charts, in this order. A second
process compiles those that look around words, prune, rescore and read charts.
"""

from collections.abc import Callable
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from lpcfg.base.cores import cores
from lpcfg.engine.pruned.coarse import Pruned
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.grammar.tables import Emissions, Tables

if TYPE_CHECKING:
    from lpcfg.base.executors import Processes

LONGEST_WAIT = 60.0
"""Seconds to wait for the second process; it takes 10."""


class BackgroundCompiler:
    """A process beside this one, which compiles what is needed later. It is begun once at most."""

    def __init__(self) -> None:
        self._begun = False
        self._executor: Processes | None = None

    @property
    def is_running(self) -> bool:
        """Tell whether the process was begun, and has not been waited for."""
        return self._executor is not None

    def begin(self, work: Callable[[], object]) -> None:
        """Start the process, once, unless there is no core for it, or this is a worker itself."""
        # not imported before, because most processes find their kernels compiled
        from multiprocessing import parent_process

        from lpcfg.base.executors import Processes

        if self._begun or cores() < 2 or parent_process() is not None:
            return
        self._begun = True
        executor = Processes(1)
        with suppress(OSError):  # no memory for it, or too many processes: this one does it all
            self._work = executor.submit(_quietly, work)
            self._executor = executor

    def wait(self) -> None:
        """Wait for the end of the process, if there is one. What it has not compiled is compiled
        here when it is called.
        """
        if (executor := self._executor) is not None:  # several threads may wait
            with suppress(Late):
                self._work.exception(LONGEST_WAIT)  # the process may have died
            executor.shutdown()
            self._executor = None


def _quietly(work: Callable[[], object]) -> None:
    with suppress(Exception):  # the other process compiles it then, and tells what is wrong
        work()


def two_words(tables: Tables) -> Pruned | None:
    """Make a chart of two words below one rule: to compile kernels, they are called with it. Return
    None if the grammar has no rule over two words.
    """
    grammar = tables.grammar
    entry = np.full(grammar.n_symbols, -1, np.int32)
    entry[grammar.entries[:, 0]] = np.arange(len(grammar.entries))
    over_words = np.flatnonzero((entry[grammar.rules[:, 1:]] >= 0).all(axis=1))
    if not len(over_words):
        return None
    rule = over_words[tables.c_one[grammar.rules[over_words, 0]].argmax()]
    parent, left, right = grammar.rules[rule]
    chart = Chart(
        symbol=np.array([left, right, parent], np.int32),
        start=np.array([0, 1, 0], np.int32),
        end=np.array([1, 2, 2], np.int32),
        entry=np.array([entry[left], entry[right], -1], np.int32),
        inside=np.ones(3),
        edge_start=np.array([0, 0, 0, 1]),
        rule=np.array([rule], np.int32),
        left=np.array([0], np.int32),
        right=np.array([1], np.int32),
        value=np.ones(1),
    )
    return Pruned(2, chart, item=np.ones(3), edge=np.ones(1), log_scale=0.0, log_probability=0.0)


def emitted(pruned: Pruned) -> Emissions:
    """Return the emissions of the words in the chart that `two_words` makes."""
    words = slice(0, pruned.length)
    return Emissions(
        start=np.arange(pruned.length + 1, dtype=np.int32),
        symbol=pruned.chart.symbol[words],
        entry=pruned.chart.entry[words],
        weight=pruned.chart.inside[words],
    )


background_compiler = BackgroundCompiler()
"""The process beside this one."""
