"""The parsing benchmark runs, and refuses to time a model that is wrong."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import parse

from lpcfg.kinds.constituency.model import Model, to_bundle
from lpcfg.store.versions import publish
from tests import small_models

ALWAYS = {"cpu", "commit", "numba", "numpy", "peak_rss_mb", "p50_ms", "p99_ms", "states", "n"}


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    publish(tmp_path, "small", to_bundle(small_models.spectral(), facts={}, card="", exact=True))
    given = ["parse", "--json", "--model", "small", "--store", str(tmp_path)]
    given += ["--treebank", str(small_models.SMALL), "--sentences", "8", "--repeat", "2"]
    monkeypatch.setattr(sys, "argv", given)
    return given


@pytest.mark.usefixtures("arguments")
def test_the_benchmark_measures_every_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[str] = []

    def start(model: str, store: Path, words: list[str], cache: str) -> parse.Record:
        assert (model, store.is_dir(), len(words) > 0) == ("small", True, True)
        started.append(cache)
        return {"what": "start", "p50_ms": None, "p99_ms": None, "n": 1}

    monkeypatch.setattr(parse, "start", start)  # starts compile for a minute
    parse.main()
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for record in records:
        assert record.keys() >= ALWAYS
    kinds = [record["what"] for record in records]
    assert kinds == ["profile", "treebank", "treebank"] + ["length"] * 5 + ["pruning"] * 5 + [
        "start",
        "start",
    ]
    assert started == ["cold", "warm"]
    assert [r["length"] for r in records if r["what"] == "length"] == [10, 20, 40, 80, 160]
    assert [r["parse_threads"] for r in records if r["what"] == "treebank"] == [1, 2]
    by_scale = {r["scale"]: r["f1"] for r in records if r["what"] == "pruning"}
    assert by_scale[1.0] == next(r["f1"] for r in records if r["what"] == "treebank")
    assert {"coarse_ms", "fine_ms", "decode_ms", "python_ms"} <= records[0].keys()


def test_the_benchmark_can_print_only_the_profile(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments.append("--profile")
    arguments.remove("--json")
    parse.main()
    (line,) = capsys.readouterr().out.splitlines()
    assert "what=profile" in line


def test_the_benchmark_can_measure_starts_alone(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parse, "start", lambda *_: {"what": "start"})
    arguments.append("--starts")
    parse.main()
    kinds = [json.loads(line)["what"] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["start", "start"]


def test_a_model_that_is_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_models.spectral()
    (member,) = model.members

    def exact_of_another(tables: object, emissions: object) -> object:
        del tables
        return inside(replace(member, c_one=member.c_one * 1.01), emissions)

    inside = parse.inside
    monkeypatch.setattr(parse, "inside", exact_of_another)
    with pytest.raises(SystemExit, match=r"expected log p\(x\) .*: nothing to time"):
        parse.check_agreement(model, small_models.trees())


def test_the_benchmark_checks_models_of_counts_too() -> None:
    model: Model = small_models.counts()
    parse.check_agreement(model, small_models.trees())


def test_the_start_is_measured_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that prints six figures stands in for one that compiles for a minute."""
    monkeypatch.setattr(parse, "START", "print(0.5, 0.25, 1.0, 1.5, 2048, 3072)")
    record = parse.start("small", tmp_path, ["The", "cat"], "warm")
    assert {k: v for k, v in record.items() if k != "process_seconds"} == {
        "what": "start",
        "cache": "warm",
        "import_seconds": 0.5,
        "load_seconds": 0.25,
        "first_parse_seconds": 1.0,
        "seconds": 1.75,
        "cpu_seconds": 1.5,
        "resident_mb": 2.0,
        "peak_mb": 3.0,
    }
