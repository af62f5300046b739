"""The kernels that are needed later are compiled by a second process where none are kept."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from lpcfg.engine.pruned.coarse import Pruned, Thresholds
from lpcfg.engine.warmup import BackgroundCompiler, emitted, two_words
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.pipeline import train
from tests import small_models

FIRST_PARSE = """
import lpcfg
from lpcfg.base.jit import import_numba
import_numba()
from numba.core import event

class Listener(event.Listener):
    def on_start(self, event):
        kernel = event.data["dispatcher"].py_func
        found.append(f"{kernel.__module__}.{kernel.__name__}")
    def on_end(self, event):
        pass

found = []
event.register("numba:compile", Listener())
print(lpcfg.load("en")("The cat sat on the mat.")[0].tree)
print(*sorted(set(found)))
"""


def test_the_first_parse_does_not_compile_what_rescores(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FIRST_PARSE],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    tree, compiled = run.stdout.splitlines()
    assert tree.startswith("(S (NP (DT The) (NN cat))")
    assert "lpcfg.engine.pruned.kernels.build_chart" in compiled
    assert "lpcfg.engine.rescoring" not in compiled
    assert "lpcfg.engine.pruned.kernels.label_shares" not in compiled


def test_two_words_make_a_chart_of_one_tree() -> None:
    model = small_models.counts()
    found = two_words(model.coarse)
    assert found is not None
    chart, grammar = found.chart, model.grammar
    parent, left, right = grammar.rules[chart.rule[0]].tolist()
    assert chart.symbol.tolist() == [left, right, parent]
    assert grammar.entries[chart.entry[:2], 0].tolist() == [left, right]
    coarse, given = Parser(model)._own.coarse, emitted(found)
    words, _, _, exponent = coarse.merit_factors(given)
    assert words.symbol.tolist() == [left, right]
    assert isinstance(coarse.pruned(chart, Thresholds(), 2, exponent), Pruned)


def test_a_grammar_without_rules_has_no_two_words(tmp_path: Path) -> None:
    bank = tmp_path / "words.mrg"
    bank.write_text("(FRAG (UH Yes))\n" * 5)
    model, _ = train(bank, TrainingConfig(members=(member("counts"),)))
    assert two_words(model.coarse) is None


def die() -> None:
    os._exit(1)


def test_a_process_that_dies_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lpcfg.engine.warmup.cores", lambda: 2)
    second = BackgroundCompiler()
    second.begin(die)
    assert second.is_running
    second.wait()
    assert not second.is_running


def test_a_process_that_cannot_start_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lpcfg.engine.warmup.cores", lambda: 2)
    start = Mock(side_effect=BlockingIOError(11, "Resource temporarily unavailable"))
    monkeypatch.setattr("lpcfg.base.executors.WithoutMain.Process.start", start)
    second = BackgroundCompiler()
    second.begin(die)
    assert not second.is_running
    second.wait()


@pytest.mark.parametrize("why", ["one core", "a worker"])
def test_one_core_and_workers_compile_alone(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lpcfg.engine.warmup.cores", lambda: 1 if why == "one core" else 2)
    if why == "a worker":
        monkeypatch.setattr("multiprocessing.parent_process", lambda: object())
    second = BackgroundCompiler()
    second.begin(die)
    assert not second.is_running
