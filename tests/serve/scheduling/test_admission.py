"""Admission: who is let in, and what is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.serve.http.problems import Refused
from lpcfg.serve.scheduling.admission import (
    Admission,
    Priority,
    cost,
    cost_of_text,
    cost_of_tokens,
    priority_of,
)


def test_cost_grows_faster_than_length() -> None:
    lengths = (1, 10, 20, 40, 80, 120, 200)
    assert [cost(n) for n in lengths] == sorted(cost(n) for n in lengths)
    for shorter, longer in ((10, 40), (40, 80), (80, 200)):
        assert cost(longer) / longer > cost(shorter) / shorter


def test_a_token_of_a_megabyte_is_no_single_short_sentence() -> None:
    assert priority_of(cost_of_tokens(["the", "cat"])) is Priority.SINGLE
    for one in (cost_of_tokens(["a" * 1_000_000]), cost_of_text("a" * 1_000_000, longest=1)):
        assert priority_of(one) is Priority.LARGER


def test_only_an_idle_service_accepts_work_of_any_size() -> None:
    admission = Admission(threads=2, most_requests=8, most_seconds=1.0)
    tickets = []
    for _ in range(3):
        admission.check(Priority.LARGER, "a")
        tickets.append(admission.enter(Priority.LARGER, "a", 1.0))
    with pytest.raises(Refused, match=r"at most 8 requests or 1 seconds of work to wait.* 1\.5"):
        admission.check(Priority.LARGER, "a")
    assert admission.refused == 1
    admission.worked(tickets[0], 1.0)
    admission.leave(tickets[0])
    admission.check(Priority.LARGER, "a")


def test_the_number_of_waiting_requests_is_limited() -> None:
    admission = Admission(threads=1, most_requests=3, most_seconds=1.0)
    for _ in range(4):
        admission.check(Priority.SINGLE, "a")
        admission.enter(Priority.SINGLE, "a", 1e-6)
    with pytest.raises(Refused, match="expected at most 3 requests") as refused:
        admission.check(Priority.SINGLE, "a")
    assert refused.value.retry_after is not None


def test_a_full_priority_says_nothing_of_the_others() -> None:
    admission = Admission(threads=1, most_requests=3, most_seconds=1.0)
    for _ in range(4):
        admission.enter(Priority.LARGER, "a", 100.0)
    with pytest.raises(Refused):
        admission.check(Priority.LARGER, "a")
    admission.check(Priority.SINGLE, "a")


def test_a_client_finds_room_in_a_priority_that_another_fills() -> None:
    admission = Admission(threads=1, most_requests=5, most_seconds=1.0)
    for _ in range(6):
        admission.check(Priority.SINGLE, "a")
        admission.enter(Priority.SINGLE, "a", 1e-6)
    for _ in range(3):  # half of six tickets
        admission.check(Priority.SINGLE, "b")
        admission.enter(Priority.SINGLE, "b", 1e-6)
    for client in "ab":
        with pytest.raises(Refused):
            admission.check(Priority.SINGLE, client)


@given(st.lists(st.integers(0, 99), max_size=400))
def test_however_many_clients_there_are_work_is_bounded(clients: list[int]) -> None:
    admission = Admission(threads=1, most_requests=5, most_seconds=1.0)
    for client in clients:
        with suppress(Refused):
            admission.check(Priority.SINGLE, str(client))
            admission.enter(Priority.SINGLE, str(client), 1e-6)
    assert admission.requests <= 4 * 6


def test_a_client_may_have_half_of_the_batches() -> None:
    admission = Admission(threads=1, most_requests=3, most_seconds=1.0, most_batches=3)
    for client in ("a", "a", "b"):
        admission.check_batch(client)
        admission.enter_batch(client)
    for client in ("a", "b", "c"):
        with pytest.raises(Refused, match="at most 3 batches at once, and 2 of one client"):
            admission.check_batch(client)
    admission.leave_batch("a")
    admission.check_batch("a")


@given(st.lists(st.tuples(st.sampled_from(Priority), st.sampled_from("abc"), st.floats(0, 9))))
def test_nothing_remains_of_work_that_is_done(given_: list[tuple[Priority, str, float]]) -> None:
    admission = Admission(threads=1, most_requests=3, most_seconds=1.0)
    tickets = [admission.enter(*one) for one in given_]
    for number, ticket in enumerate(tickets):
        if number % 2:
            admission.worked(ticket, 2 * ticket.cost)
        admission.leave(ticket)
    assert admission.requests == 0
    assert admission.waiting_seconds == 0.0


def test_the_cost_scale_is_learned_from_measured_work() -> None:
    admission = Admission(threads=1, most_requests=8, most_seconds=1.0)
    for _ in range(200):
        admission.learn(0.01, 0.03)
    assert admission.scale == pytest.approx(3.0, rel=0.01)
    admission.enter(Priority.SINGLE, "a", 0.5)
    assert admission.waiting_seconds == pytest.approx(1.5, rel=0.01)


def test_an_estimate_is_corrected_once_the_cost_is_known() -> None:
    admission = Admission(threads=1, most_requests=8, most_seconds=1.0)
    ticket = admission.enter(Priority.SINGLE, "a", 4.0)
    admission.enter(Priority.LARGER, "b", 1.0)
    admission.correct(ticket, -3.5)
    assert admission.waiting_seconds == pytest.approx(1.5)
