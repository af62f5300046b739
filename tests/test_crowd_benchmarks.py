"""The benchmarks of many at once and of the slowest inputs run, and count what they parse."""

import json
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from benchmarks import together, worst

from lpcfg.kinds.constituency.model import to_bundle
from lpcfg.store.versions import publish
from tests import small_models


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    publish(tmp_path, "small", to_bundle(small_models.spectral(), facts={}, card="", exact=True))
    given = ["benchmark", "--model", "small", "--store", str(tmp_path)]
    given += ["--treebank", str(small_models.SMALL)]
    monkeypatch.setattr(sys, "argv", given)
    return given


def test_threads_and_processes_parse_every_sentence(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(together, "THREADS", (2,))
    monkeypatch.setattr(together, "PROCESSES", (2,))
    arguments += ["--sentences", "8"]
    together.main()
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["what"], one["at_once"]) for one in found] == [("threads", 2), ("processes", 2)]
    assert min(one["sentences_per_second"] for one in found) > 0
    assert {one["n"] for one in found} == {8}


def test_a_process_that_ends_early_ends_the_benchmark(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="got one that ended"):
        together.processes("missing", tmp_path, [["a"]])


def test_the_slowest_input_is_told(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments += ["--inputs", "4"]
    worst.main()
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == 4
    assert found["worst_ms"] >= found["p50_ms"] > 0
    assert found["worst"]


def test_random_inputs_are_of_four_kinds() -> None:
    known = [f"w{k}" for k in range(1000)]
    found = list(islice(worst.inputs(known, np.random.default_rng(0)), 40))
    assert all(1 <= len(words) <= worst.LONGEST for words in found)
    assert all(set(words) <= set(known) for words in found[::4])
    assert all(len(set(words)) <= 4 for words in found[1::4])
    assert any(set(words) & set(known) and set(words) & set(worst.ODD) for words in found[2::4])
    assert all(set(words) <= set(worst.ODD) for words in found[3::4])
