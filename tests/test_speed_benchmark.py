"""The comparison of two commits lets them take turns, and says which is faster."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks import speed
from benchmarks.speed import Job, Side

from lpcfg.kinds.constituency.model import to_bundle
from lpcfg.store.versions import publish
from tests import small_models


class Timed(Side):
    """A side whose sentences take given seconds, a row a turn."""

    def __init__(self, turns: Sequence[Sequence[float]], memory: float = 0.0) -> None:
        self.turns = iter(turns)
        self.start, self.memory = 1.0, memory

    def seconds(self, _: Job) -> Sequence[float]:
        return next(self.turns)


def test_a_sentence_costs_the_least_of_its_turns() -> None:
    job = Job("two", True, [["a"], ["b"]])
    sides = [Timed([[0.004, 0.010], [0.006, 0.008]]), Timed([[0.001, 0.009], [0.002, 0.003]])]
    assert speed.compared(sides, job, 2) == pytest.approx((6.0, 2.0))


def test_the_table_says_how_many_times_faster_it_is() -> None:
    sides = [Timed([], 300.0), Timed([], 200.0)]
    text = speed.table([(Job("treebank", True, []), 6.0, 2.0)], sides, "abc")
    assert "| treebank | 6.00 | 2.00 | 500 | 3.00 |" in text
    assert "against abc" in text
    assert "| peak memory after it, MB | 300.00 | 200.00 | | 1.50 |" in text


def test_the_jobs_are_the_treebank_pieces_and_random_words() -> None:
    jobs = list(speed.jobs_of([["a", "b"], ["c"]]))
    assert [len(job.sentences[0]) for job in jobs] == [2, 2, 20, 40, 80, 160, 200]
    assert jobs[2].sentences[0][:4] == ["a", "b", "c", "a"]


def test_a_side_parses_with_the_package_of_its_checkout(tmp_path: Path) -> None:
    publish(tmp_path, "small", to_bundle(small_models.spectral(), facts={}, card="", exact=True))
    side = Side(speed.ROOT, "small", tmp_path)
    (seconds,) = side.seconds(Job("one", False, [["the", "cat"]]))
    side.close()
    assert seconds > 0
    assert min(side.start, side.memory) > 0
