"""Compile kernels in two processes where none are kept yet: one half each, in half the time.

Numba compiles under one lock, so threads would not help. The process that parses its first sentence
compiles the kernels that build charts and run the tensors over them, and a second process those
that prune, rescore and read charts.
"""

import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from lpcfg.cores import cores
from lpcfg.engine.pruned.kernels import Chart
from lpcfg.grammar.tables import Tables

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

LONGEST_WAIT = 60.0
"""Seconds to wait for the second process; it takes 10."""


class SecondProcess:
    """A process beside this one, which compiles what is needed later. It is begun once at most."""

    def __init__(self) -> None:
        self.process: BaseProcess | None = None
        self._begun = False

    def begin(self, work: Callable[[], object]) -> None:
        """Start the process, once, unless there is no core for it, or this is a worker itself."""
        # not imported before, because most processes find their kernels compiled
        from multiprocessing import parent_process

        from lpcfg.processes import WithoutMain

        if self._begun or cores() < 2 or parent_process() is not None:
            return
        self._begun = True
        process = WithoutMain().Process(target=_alone, args=(work,), daemon=True)
        with suppress(OSError):  # no memory for it, or too many processes: this one does it all
            process.start()
            self.process = process

    def wait(self) -> None:
        """Wait for the end of the process, if there is one. What it has not compiled is compiled
        here when it is called.
        """
        if (process := self.process) is not None:  # several threads may wait
            process.join(LONGEST_WAIT)
            self.process = None


def _alone(work: Callable[[], object]) -> None:
    from lpcfg.processes import end_with_parent

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its parent, and writes nothing
    end_with_parent()
    with suppress(Exception):  # the other process compiles it then, and tells what is wrong
        work()


def two_words(tables: Tables) -> Chart:
    """Return the chart of two words below one rule, with which kernels can be called."""
    rules, is_tag = tables.grammar.rules, tables.grammar.rules[:, 1:] >= tables.grammar.n_internal
    rule = int(np.where(is_tag.all(axis=1), tables.c_one[rules[:, 0]], 0.0).argmax())
    parent, left, right = rules[rule]
    return Chart(
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
