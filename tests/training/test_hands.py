"""Merging in a fixed tree: the same sums, whoever makes them and in whatever order."""

import random
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from lpcfg.training.hands import folded, here


def paired(one: str, other: str) -> str:
    return f"({one}{other})"


@pytest.mark.parametrize(
    ("leaves", "tree"),
    [
        ("a", "a"),
        ("ab", "(ab)"),
        ("abc", "((ab)c)"),
        ("abcdef", "(((ab)(cd))(ef))"),
        ("abcdefg", "(((ab)(cd))((ef)g))"),
    ],
)
def test_results_are_merged_in_one_binary_tree(leaves: str, tree: str) -> None:
    assert folded(leaves, paired) == tree


def test_few_results_wait_to_be_merged() -> None:
    alive: set[int] = set()
    most = 0

    def made() -> Iterator[int]:
        nonlocal most
        for k in range(100):
            alive.add(k)
            most = max(most, len(alive))
            yield k

    def merge(one: int, other: int) -> int:
        alive.discard(one)
        return other

    folded(made(), merge)
    assert most <= 8  # one for each of the seven levels, and the newest


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_order_of_arrival_does_not_change_a_bit(workers: int) -> None:
    numbers = np.random.default_rng(0).normal(size=(40, 3)) * 10.0 ** np.arange(40)[:, None]
    chance = random.Random(workers)

    def slowly(row: int) -> list[np.ndarray]:
        time.sleep(chance.random() / 200)
        return [numbers[row], -numbers[row]]

    with here(workers) as hands:
        totals = hands.results(hands.totals(slowly, range(40), np.add, 2))
    expected = folded(iter(numbers), np.add)
    assert totals[0].tobytes() == expected.tobytes()
    assert totals[1].tobytes() == (-expected).tobytes()


def test_one_part_more_is_taken_than_there_are_workers() -> None:
    taken = 0

    def parts() -> Iterator[int]:
        nonlocal taken
        while taken < 20:
            taken += 1
            yield taken

    with here(3) as hands:
        ahead = hands.each(lambda part: taken - part, parts())
    assert len(ahead) == 20
    assert max(ahead) <= 4


def test_workers_go_on_while_the_first_part_takes_long() -> None:
    third = threading.Event()

    def work(part: int) -> bool:
        if part == 2:
            third.set()
        return part != 0 or third.wait(10)

    with here(2) as hands:
        assert all(hands.each(work, range(3)))


def test_an_error_of_a_part_is_raised() -> None:
    def fail(part: int) -> list[int]:
        raise ValueError(f"part {part}")

    with here(2) as hands, pytest.raises(ValueError, match="part 0"):
        hands.totals(fail, range(5), max, 1)
