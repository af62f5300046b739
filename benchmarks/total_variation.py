"""How far p(tree) of trained models is from that of the grammar whose trees they learned from.

    python -m benchmarks.total_variation

For each number of trees, it samples them from a known grammar, trains as examples/recursive.toml
says, and prints ½ Σ |p̂ − p| over all trees of up to eight words. These have a probability of
.9996 under that grammar.
"""

import argparse
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from math import exp
from pathlib import Path
from typing import Any

from benchmarks.environment import ROOT

from lpcfg.cli import main as lpcfg

OPTIONS = (
    "--estimator spectral --states 2 --exact --rare-threshold 0 --smoothing none --scaling none "
    "--cut 0.01 --rescore none"
)
"""Options of `lpcfg train` for a grammar without unknown words."""
MOST_WORDS = 8


def main() -> None:
    arguments = _arguments()
    for count, distance in variations(arguments.grammar, arguments.trees, arguments.seed):
        print(f"{count:,} trees: {distance:.2g}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    grammar = ROOT / "examples" / "recursive.toml"
    parser.add_argument("--grammar", default=grammar, type=Path, help="a known grammar")
    numbers = [1_000, 10_000, 100_000]
    parser.add_argument("--trees", default=numbers, type=int, nargs="+", help="numbers of trees")
    parser.add_argument("--seed", default=1, type=int, help="of the trees")
    return parser.parse_args()


def variations(grammar: Path, counts: Sequence[int], seed: int) -> Iterator[tuple[int, float]]:
    """Yield every number of trees, and the total variation of a model that learned from them."""
    known = _objects("sample", str(grammar), "--enumerate", "--max-words", str(MOST_WORDS))
    with tempfile.TemporaryDirectory() as folder:
        everything, sampled = Path(folder, "all.mrg"), Path(folder, "sampled.mrg")
        everything.write_text("\n".join(one["tree"] for one in known), encoding="utf-8")
        store = ("--store", folder)
        for count in counts:
            drawn = _printed("sample", str(grammar), "--count", str(count), "--seed", str(seed))
            sampled.write_text(drawn, encoding="utf-8")
            _printed("train", str(sampled), "--name", "sampled", *store, *OPTIONS.split())
            scored = _objects("tree-probability", "sampled", str(everything), *store)
            pairs = zip(known, scored, strict=True)
            yield count, sum(abs(one["probability"] - _signed(told)) for one, told in pairs) / 2


def _signed(told: dict[str, Any]) -> float:
    """Return p(tree), which may be negative, of a scored tree."""
    if not told["sign"]:
        return 0.0
    return float(told["sign"] * exp(told["log_probability"]))


def _objects(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _printed(*arguments, "--json").splitlines()]


def _printed(*arguments: str) -> str:
    """Run a command, and return what it prints."""
    with redirect_stdout(io.StringIO()) as printed:
        code = lpcfg(list(arguments))
    if code:
        raise SystemExit(code)
    return printed.getvalue()


if __name__ == "__main__":
    main()
