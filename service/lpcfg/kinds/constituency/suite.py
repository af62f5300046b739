"""A suite of short sentences by kind of error, each with what must hold of its best trees.

    [3 imperatives at the beginning]
    Visit our website.
      VB Visit                     a constituent or tag over these tokens
      NP|NML our website           with one of these labels
      not NP Visit our website     no such constituent
      none CAPTION HEADING         no constituent with such a label at all
      tokens Visit our website .   the tokens, with ` || ` between sentences

A line that begins with `#` is a comment. The suite that comes with the package, `suite.txt`, is
written for this project and kept out of everything that is learned from.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from lpcfg.base.errors import InputError
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.results import Analysis
from lpcfg.kinds.sentences import ENGLISH
from lpcfg.text.files import texts

Found = frozenset[tuple[str, str]]
"""(label, its tokens with blanks between) of all constituents and tags of a text."""


@dataclass(frozen=True)
class Demand:
    """One thing that must hold: its line in the suite, and what that says."""

    line: str
    kind: str  # "has", "not", "none" or "tokens"
    labels: tuple[str, ...]
    phrases: tuple[str, ...]

    @classmethod
    def of(cls, line: str) -> "Demand | None":
        """Read the demand of a line, or return None if the line has none."""
        kind, _, rest = line.partition(" ")
        if kind == "tokens":
            return cls(line, kind, (), (rest,)) if rest else None
        if kind == "none":
            return cls(line, kind, tuple(rest.split()), ()) if rest else None
        if kind != "not":
            kind, rest = "has", line
        labels, _, phrases = rest.partition(" ")
        if not phrases:
            return None
        return cls(line, kind, tuple(labels.split("|")), tuple(phrases.split("|")))

    def holds(self, found: Found, tokens: str) -> bool:
        """Return True if this holds of a text's constituents and tokens."""
        if self.kind == "tokens":
            return tokens == self.phrases[0]
        if self.kind == "none":
            return not any(label in self.labels for label, _ in found)
        has = any((label, phrase) in found for label in self.labels for phrase in self.phrases)
        return has != (self.kind == "not")


@dataclass(frozen=True)
class Case:
    """A text of a class of errors, and what must hold of its analyses."""

    group: str
    text: str
    demands: tuple[Demand, ...]


@dataclass(frozen=True)
class Outcome:
    """A case, the demands that do not hold, and the trees that were found."""

    case: Case
    failed: tuple[Demand, ...]
    trees: tuple[str, ...]


@dataclass(frozen=True)
class SuiteScores:
    """The results of a parser on a suite."""

    outcomes: tuple[Outcome, ...]

    measure = "demands held"
    shown = (("demands held", "held_share", 1), ("sentences right", "right_share", 1))

    def rows(self) -> list[dict[str, Any]]:
        """Count sentences and demands, and how many hold: a row a class and one for all."""
        groups = dict.fromkeys(outcome.case.group for outcome in self.outcomes)
        rows = [
            _row(group, [o for o in self.outcomes if o.case.group == group]) for group in groups
        ]
        return [*rows, _row("all", self.outcomes)]

    def counts(self) -> list[tuple[float, float]]:
        """Return the demands held, and twice all demands, of every sentence."""
        return [
            (len(one.case.demands) - len(one.failed), 2 * len(one.case.demands))
            for one in self.outcomes
        ]

    def as_json(self) -> dict[str, Any]:
        """Return what `lpcfg evaluate --suite --json` prints."""
        failed = [
            {
                "class": outcome.case.group,
                "text": outcome.case.text,
                "failed": [demand.line for demand in outcome.failed],
                "trees": list(outcome.trees),
            }
            for outcome in self.outcomes
            if outcome.failed
        ]
        rows = self.rows()
        shares = {name: rows[-1][name] for _, name, _ in self.shown}
        return {"classes": rows, "failed": failed, **shares}

    def text(self) -> str:
        """Write the scores for people: a table, and the demands that do not hold."""
        lines = [f"{'':42}  sentences  all right  demands    hold"]
        for row in self.rows():
            right, held = row["right_share"], row["held_share"]
            lines.append(
                f"{row['class']:42}  {row['sentences']:9}  {right:8.1f}%  {row['demands']:7}  "
                f"{held:5.1f}%"
            )
        for outcome in self.outcomes:
            if outcome.failed:
                lines += ["", outcome.case.text, *(f"  {one.line}" for one in outcome.failed)]
                lines += [f"  {tree}" for tree in outcome.trees]
        return "\n".join(lines)


def _row(group: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    demands = sum(len(outcome.case.demands) for outcome in outcomes)
    held = demands - sum(len(outcome.failed) for outcome in outcomes)
    right = sum(not outcome.failed for outcome in outcomes)
    return {
        "class": group,
        "sentences": len(outcomes),
        "right": right,
        "right_share": 100 * right / max(len(outcomes), 1),
        "demands": demands,
        "held": held,
        "held_share": 100 * held / max(demands, 1),
    }


def suite_of(sources: Sequence[str]) -> list[Case]:
    """Read the suites of files, or, where there is none, the suite that comes with the package."""
    named = [one for source in sources for one in texts(source)]
    if not sources:
        own = files("lpcfg.kinds.constituency").joinpath("suite.txt")
        named = [("suite.txt", own.read_text(encoding="utf-8"))]
    return [case for name, text in named for case in read_suite(text, name)]


def read_suite(text: str, source: str) -> Iterator[Case]:
    """Read the cases of a suite's text. Errors name it as `source`."""
    group, said, demands = "", "", list[Demand]()
    for number, line in enumerate([*text.splitlines(), "[]"], start=1):
        stripped = line.strip()
        if not stripped or line.startswith("#"):
            continue
        if line[0].isspace():
            demand = Demand.of(stripped)
            if demand is None or not said:
                raise _wrong(
                    f"a text and below it demands such as `NP the dog`, got `{stripped}`",
                    source,
                    number,
                )
            demands.append(demand)
            continue
        if said:
            if not demands:
                raise _wrong(f"a demand below `{said}`, got none", source, number)
            yield Case(group, said, tuple(demands))
        said, demands = "", []
        if stripped.startswith("[") and stripped.endswith("]"):
            group = stripped[1:-1]
        elif group:
            said = stripped
        else:
            raise _wrong(
                f"a class such as `[particles]` before any text, got `{stripped}`", source, number
            )


def _wrong(expected: str, source: str, number: int) -> InputError:
    return InputError(f"expected {expected}, in line {number} of {source}: correct the suite")


def run_suite(parser: Parser, cases: Iterable[Case]) -> SuiteScores:
    """Parse every text and hold its best trees against its demands."""
    return SuiteScores(tuple(_outcome(parser, case) for case in cases))


def _outcome(parser: Parser, case: Case) -> Outcome:
    analyses = parser.parse(list(ENGLISH.sentences(case.text)))
    found = frozenset(pair for analysis in analyses for pair in _found(analysis))
    tokens = " || ".join(" ".join(t.text for t in analysis.tokens) for analysis in analyses)
    failed = tuple(demand for demand in case.demands if not demand.holds(found, tokens))
    trees = tuple(str(a.parses[0].tree) if a.parses else "" for a in analyses)
    return Outcome(case, failed, trees)


def _found(analysis: Analysis) -> Iterator[tuple[str, str]]:
    words = [token.text for token in analysis.tokens]
    yield from ((token.tag or "", token.text) for token in analysis.tokens)
    if analysis.parses:
        for one in analysis.parses[0].constituents:
            yield one.label, " ".join(words[one.start : one.end])
