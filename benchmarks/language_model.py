"""Perplexity on the Brown corpus, our table beside the paper's (ACL14, table 2).

    python -m benchmarks.language_model --json

One object a line: Kneser-Ney baselines, then every estimator at every number of states. The
number of EM steps is chosen on the first half of the development text; `dev` is the second half.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.environment import ROOT, Record, environment
from benchmarks.kneser_ney import KneserNey

from lpcfg.lm.corpus import Sentence, read_sentences
from lpcfg.lm.estimate import EstimationOptions, train_lm

STATES = (2, 4, 8, 16, 32, 128, 256)
VARIANTS = {
    "em, c = 0": EstimationOptions("em", prior=0.0),
    "em": EstimationOptions("em"),
    "pivot": EstimationOptions("pivot"),
    "pivot+em": EstimationOptions("pivot+em"),
}
PAPER_DEV = {
    "em, c = 0": (737, 599, 488, 468, 430, 388, 365),
    "pivot": (852, 718, 605, 559, 537, 426, 597),
    "pivot+em": (758, 582, 502, 425, 374, 310, 327),
}
"""The paper's EM has no prior, so it stands beside ours without one (c = 0)."""
PAPER_TEST = {
    "em, c = 0": 364,
    "pivot": 560,
    "pivot+em": 357,
    "Kneser-Ney, order 2": 415,
    "Kneser-Ney, order 3": 394,
}
PAPER_KN_DEV = {"Kneser-Ney, order 2": 408, "Kneser-Ney, order 3": 386}


def main() -> None:
    arguments = _arguments()
    texts = [read_sentences(arguments.data / f"{name}.txt") for name in ("train", "dev", "test")]
    records = []
    for record in measure(*texts, states=arguments.states, seed=arguments.seed):
        records.append(record)
        if arguments.json:
            print(json.dumps(record), flush=True)
        else:
            print(f"{record['model']} m={record['states']}: {record['test']}", file=sys.stderr)
    if not arguments.json:
        print(table(records, arguments.states))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    data = Path(os.environ.get("LPCFG_DATA", ROOT.parent / "shared" / "data")) / "brown"
    parser.add_argument("--data", type=Path, default=data, help="folder of {train,dev,test}.txt")
    parser.add_argument("--states", type=int, nargs="+", default=list(STATES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="one object a line")
    return parser.parse_args()


def measure(
    train: Sequence[Sentence],
    dev: Sequence[Sentence],
    test: Sequence[Sentence],
    *,
    states: list[int],
    seed: int,
) -> Iterator[Record]:
    """Yield a record per model. Kernels are compiled before anything is timed."""
    chosen_on, judged_on = dev[: len(dev) // 2], dev[len(dev) // 2 :]
    for order in (2, 3):
        started = time.perf_counter()
        baseline = KneserNey.train(train, order=order)
        yield {
            "model": f"Kneser-Ney, order {order}",
            "states": None,
            "dev": baseline.perplexity(judged_on),
            "test": baseline.perplexity(test),
            "seconds": time.perf_counter() - started,
            **environment(seed),
        }
    train_lm(train[:1000], chosen_on, EstimationOptions(states=2, max_steps=1))
    for m in states:
        for name, variant in VARIANTS.items():
            options = EstimationOptions(variant.estimator, states=m, seed=seed, prior=variant.prior)
            started = time.perf_counter()
            model = train_lm(train, chosen_on, options)
            seconds = time.perf_counter() - started
            yield {
                "model": name,
                "dev": model.perplexity(judged_on),
                "test": model.perplexity(test),
                "seconds": seconds,
                **model.training.model_dump(),
                **environment(seed),
            }


def table(records: list[Record], states: list[int]) -> str:
    """Write the perplexities of the second half of the development text, and of the test text.

    The test text is scored with the number of states that is best on the first half.
    """
    rows = [["", *(f"m = {m}" for m in states), "test"], ["---"] * (len(states) + 2)]
    for record in records[:2]:
        name = str(record["model"])
        paper = [name + ", paper", *[str(PAPER_KN_DEV[name])] * len(states)]
        rows += [[name, *[_cell(record["dev"])] * len(states), _cell(record["test"])]]
        rows += [[*paper, str(PAPER_TEST[name])]]
    for name in VARIANTS:
        mine = [record for record in records if record["model"] == name]
        best = min(mine, key=lambda record: float(str(record["dev_perplexity"])))
        cells = [f"{_cell(record['dev'])} ({_steps(record)})" for record in mine]
        rows.append([name, *cells, f"{_cell(best['test'])} (m = {best['states']})"])
        if name in PAPER_DEV:
            known = dict(zip(STATES, PAPER_DEV[name], strict=True))
            cells = [str(known.get(m, "")) for m in states]
            rows.append([f"{name}, paper", *cells, str(PAPER_TEST[name])])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(perplexity: object) -> str:
    return f"{float(str(perplexity)):.0f}"


def _steps(record: Record) -> str:
    """Write the EM steps: over r alone, + over r and s."""
    parts = [record["pivot_steps"], record["steps"]]
    return " + ".join(str(part) for part in parts if part)


if __name__ == "__main__":
    main()
