"""Every estimator on our treebanks: F1, training time, size and speed.

    OMP_NUM_THREADS=1 python -m benchmarks.estimators --write docs/results.md

Beside them stands table 1 of paper 003 (Cohen and Collins, ACL 2014). A second table asks what EM
costs until its best step, as table 3 of paper 001 (NAACL 2013) does: the step that is best on
held-out trees is found first, then only the training up to there is timed. `--json` prints an
object a line instead; `--write` puts the tables in their place in a file. F1 is strict, over every
k-th dev sentence, tagged by the parser itself and with gold tags; models are those that the store
keeps.
"""

import argparse
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import treebanks
from benchmarks.environment import Record, environment
from benchmarks.page import origin, show, table
from benchmarks.spectral_tables import PAPER, WHOLE
from benchmarks.treebanks import TAGS

from lpcfg.kinds.constituency.predict import Parser
from lpcfg.training.config import TrainingConfig, member
from lpcfg.training.pipeline import train, train_and_publish
from lpcfg.training.summary import TrainReport
from lpcfg.trees.tree import Tree

DEFAULT = "the default configuration"
LATENT = ("em", "spectral", "pivot", "pivot+em", "clustering", "clustering+em")
CLIMBING = ("em", "pivot+em")
PATIENCE, MOST_STEPS = 10, 100
MEGABYTE = 1_000_000
COMMON = re.compile("(all trees )?(read|grammar and lexicon|tagger|weights|calibration)")
"""Stages of every training, whatever the estimator."""

PAPER_F1: Mapping[str, Mapping[int, float]] = {
    "em": {8: 86.69, 16: 88.32, 24: 88.35, 32: 88.56},
    "spectral": PAPER[WHOLE],
    "pivot": {8: 83.56, 16: 86.00, 24: 86.87, 32: 86.40},
    "pivot+em": {8: 86.83, 16: 88.14, 24: 88.64, 32: 88.55},
}
"""Table 1 of paper 003: section 22 of the Penn treebank, a tagger's tags."""
PAPER_STEPS: Mapping[str, Mapping[int, int]] = {
    "em": {8: 40, 16: 30, 24: 30, 32: 20},
    "pivot+em": {8: 2, 16: 6, 24: 2, 32: 2},
}
"""The steps of EM to the best F1, from the same table."""
PAPER_MINUTES: Mapping[str, Mapping[int, int]] = {
    "em": {8: 180, 16: 1566, 24: 5616, 32: 11232},
    "spectral": {8: 212, 16: 319, 24: 435, 32: 592},
}
"""Table 3 of paper 001: to train the best model with EM, and in all with the spectral algorithm."""


def main() -> None:
    arguments = _arguments()
    found = (
        record for bank in arguments.banks for record in measure(arguments.data / bank, arguments)
    )
    show("estimators", arguments, found, _page)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    treebanks.add_arguments(parser)
    parser.add_argument("--states", type=int, nargs="+", default=[16], help="of every estimator")
    parser.add_argument("--climb", type=int, default=32, help="states of the steps of EM")
    parser.add_argument("--every", type=int, default=4, metavar="K", help="every K-th dev tree")
    return parser.parse_args()


# Measuring ----------------------------------------------------------------------------------------


def measure(bank: Path, arguments: argparse.Namespace) -> Iterator[Record]:
    """Yield a record per configuration, then per estimator that climbs, and its rival."""
    gold = treebanks.dev_trees(bank)[:: arguments.every]
    yield _trained(
        bank, gold, "counts", 1, TrainingConfig(members=(member("counts"),), rescoring=None)
    )
    for m in arguments.states:
        for name in LATENT:
            config = TrainingConfig(members=(member(name, states=m),), rescoring=None)
            yield _trained(bank, gold, name, m, config)
    yield _trained(bank, gold, DEFAULT, None, TrainingConfig())
    for name in ("spectral", *CLIMBING):
        yield _climbed(bank, name, arguments.climb)


def _trained(
    bank: Path, gold: Sequence[Tree], name: str, m: int | None, config: TrainingConfig
) -> Record:
    """Train a configuration, and measure training, storage, F1 and speed."""
    with TemporaryDirectory() as store:
        start = time.perf_counter()
        reference, report = train_and_publish(
            bank / "train.mrg", config, store=store, name="measured"
        )
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in Path(store).rglob("*") if file.is_file())
        parser = Parser.load(str(reference), store)
    analyses = {tags: treebanks.parsed(parser, gold, tags) for tags in TAGS}
    return {
        "measured": "estimator",
        "estimator": name,
        "members": [f"{one.estimator} {one.as_json().get('states', 1)}" for one in config.members],
        "states": m,
        "bank": bank.name,
        "sentences": len(gold),
        **environment(config.seed),
        **{f"f1_{tags}": treebanks.f1(gold, found) for tags, (found, _) in analyses.items()},
        "seconds": seconds,
        "cpu_seconds": sum(stage.cpu_seconds for stage in report.stages),
        "own_cpu_seconds": _own(report),
        "bytes": size,
        "sentences_per_cpu_second": len(gold) / analyses["predicted"][1],
    }


def _climbed(bank: Path, name: str, m: int) -> Record:
    """Measure an estimator's own CPU seconds: with EM, up to the best step on held-out trees."""
    config = TrainingConfig(members=(member(name, states=m),), rescoring=None)
    steps, scores = None, []
    if name in CLIMBING:
        asking = member(name, states=m, steps=MOST_STEPS, patience=PATIENCE)
        (facts,) = train(bank / "train.mrg", replace(config, members=(asking,)))[1].members
        steps, scores = facts["steps"], facts["held_out_f1"]
        config = replace(config, members=(member(name, states=m, steps=steps),))
    _, report = train(bank / "train.mrg", replace(config, held_out=0))
    return {
        "measured": "steps",
        "estimator": name,
        "states": m,
        "bank": bank.name,
        **environment(config.seed),
        "steps": steps,
        "f1_held_out": scores,
        "own_cpu_seconds": _own(report),
    }


def _own(report: TrainReport) -> float:
    """Sum the CPU seconds of the stages that other estimators do not have."""
    return sum(one.cpu_seconds for one in report.stages if not COMMON.fullmatch(one.name))


# Telling ------------------------------------------------------------------------------------------


def _page(records: Sequence[Record]) -> str:
    parts = [origin("estimators", records[0])]
    for bank in dict.fromkeys(record["bank"] for record in records):
        mine = [record for record in records if record["bank"] == bank]
        scored = [record for record in mine if record["measured"] == "estimator"]
        climbed = [record for record in mine if record["measured"] == "steps"]
        parts += [
            f"### {bank}/dev, {scored[0]['sentences']} sentences",
            table([HEADING, *map(_row, scored)]),
            f"The default configuration is {', '.join(scored[-1]['members'])} (states).",
            f"### {bank}/train: EM to the step that is best on held-out trees",
            _steps_table(climbed),
        ]
    return "\n\n".join(parts)


HEADING = [
    *("", "states", "F1, own tags / gold tags", "paper (WSJ 22)", "CPU s to train"),
    *("of which its own", "MB stored", "sentences a CPU s"),
]


def _row(record: Record) -> list[str]:
    m = record["states"]
    paper = PAPER_F1.get(record["estimator"], {}).get(m)
    return [
        record["estimator"],
        "" if m is None else str(m),
        f"{record['f1_predicted']:.2f} / {record['f1_gold']:.2f}",
        "" if paper is None else f"{paper:.2f}",
        f"{record['cpu_seconds']:.1f}",
        f"{record['own_cpu_seconds']:.1f}",
        f"{record['bytes'] / MEGABYTE:.1f}",
        f"{record['sentences_per_cpu_second']:.0f}",
    ]


def _steps_table(records: Sequence[Record]) -> str:
    """Write our steps and seconds beside the papers', with ratios to the spectral algorithm's."""
    spectral, em, *_ = records
    m = spectral["states"]
    goal = max(em["f1_held_out"])
    rows = [
        [
            *("", "states", "steps", "paper", "F1, held out", "steps to EM's best"),
            *("CPU s", "× spectral", "paper's hours", "× spectral, paper"),
        ]
    ]
    for one in records:
        name = one["estimator"]
        steps, minutes = PAPER_STEPS.get(name, {}).get(m), PAPER_MINUTES.get(name, {}).get(m)
        rows.append(
            [
                name,
                str(m),
                _cell(one["steps"], "d"),
                _cell(steps, "d"),
                _cell(max(one["f1_held_out"], default=None), ".2f"),
                _cell(_first(one["f1_held_out"], goal), "d"),
                f"{one['own_cpu_seconds']:.1f}",
                _cell(one["own_cpu_seconds"] / spectral["own_cpu_seconds"], ".1f"),
                _cell(minutes and minutes / 60, ".1f"),
                _cell(minutes and minutes / PAPER_MINUTES["spectral"][m], ".1f"),
            ]
        )
    return table(rows)


def _first(scores: Sequence[float], goal: float) -> int | None:
    """Find the first step (0 is before the first) whose score reaches the goal."""
    return next((step for step, score in enumerate(scores) if score >= goal), None)


def _cell(number: float | None, form: str) -> str:
    return "" if number is None else format(number, form)


if __name__ == "__main__":
    main()
