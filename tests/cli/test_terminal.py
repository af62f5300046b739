"""Progress where there is no terminal: lines now and then."""

from types import SimpleNamespace

import pytest

from lpcfg.cli import terminal


def lines(
    steps: list[tuple[float, int]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> list[str]:
    """Return what is written at these seconds, when so many of 100 are done."""
    clock = iter([seconds for seconds, _ in steps])
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with terminal.progress() as show:
        for _, done in steps:
            show("read", done, 100)
    return capsys.readouterr().err.splitlines()


def test_every_tenth_has_a_line_with_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [(0.0, 0), (1.0, 5), (2.0, 10), (3.0, 15), (10.0, 50)]
    assert lines(steps, monkeypatch, capsys) == [
        "read",
        "read: 10 of 100, 18 s left",
        "read: 50 of 100, 10 s left",
    ]


def test_what_was_done_before_does_not_shorten_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines([(0.0, 40), (10.0, 50)], monkeypatch, capsys) == [
        "read: 40 of 100",
        "read: 50 of 100, 50 s left",
    ]


def test_a_slow_stage_has_a_line_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [(0.0, 0), (59.0, 1), (61.0, 2), (100.0, 3), (122.0, 4)]
    assert [line.split(",")[0] for line in lines(steps, monkeypatch, capsys)] == [
        "read",
        "read: 2 of 100",
        "read: 4 of 100",
    ]
