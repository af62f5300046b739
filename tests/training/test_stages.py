"""Training measures each of its stages, and reports them as JSON and as a table."""

import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from lpcfg.training.stages import StageRecord, Stages, stage_table


def test_stages_are_recorded_in_the_order_they_end() -> None:
    stages = Stages()
    with stages.stage("read") as stage:
        stage.advance(3)
        stage.advance()
    with stages.under("member 1").stage("svd"):
        pass
    assert [(record.name, record.items) for record in stages.records] == [
        ("read", 4),
        ("member 1 svd", 0),
    ]
    assert json.loads(json.dumps(asdict(stages.records[0])))["name"] == "read"


def test_progress_hears_of_every_step() -> None:
    heard: list[tuple[str, int, int]] = []
    stages = Stages(lambda *step: heard.append(step))
    with stages.stage("svd", total=5) as stage:
        stage.advance(2)
        stage.advance(3)
    assert heard == [("svd", 0, 5), ("svd", 2, 5), ("svd", 5, 5)]


def test_a_stage_that_fails_leaves_no_record() -> None:
    stages = Stages()
    with pytest.raises(KeyError, match="svd"), stages.stage("svd"):
        raise KeyError("svd")
    assert stages.records == []


def test_seconds_cpu_and_memory_are_those_of_the_stage_and_its_workers() -> None:
    stages = Stages()
    with stages.stage("own") as stage:
        held = bytearray(80_000_000)
        stage.advance(sum(range(3_000_000)) and len(held))
    code = "x = bytearray(120_000_000); sum(range(6_000_000))"
    with stages.stage("of a worker"):
        subprocess.run([sys.executable, "-c", code], check=True)
    own, workers = stages.records
    assert own.peak_bytes > 80_000_000
    assert 0 < own.cpu_seconds <= own.seconds * 1.5 + 0.1  # CPU time is counted in steps of 10 ms
    assert workers.worker_peak_bytes > 120_000_000
    assert workers.cpu_seconds > 0.02


def test_the_table_sums_up() -> None:
    read = StageRecord("read", 1.25, 2.5, 150_000_000, 90_400_000, 1000)
    table = stage_table([read, replace(read, name="svd of S", seconds=10.0, items=0)])
    assert table.splitlines() == [
        "stage     seconds  CPU s  items  peak MB  worker MB",
        "read         1.25   2.50   1000      150         90",
        "svd of S    10.00   2.50             150         90",
        "all         11.25   5.00",
    ]
