"""The suite of short sentences by kind of error, and how it is read and scored."""

import json
from collections import Counter
from pathlib import Path

import pytest

from lpcfg.base.errors import InputError
from lpcfg.cli import main
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.suite import Demand, read_suite, run_suite, suite_of
from lpcfg.text.tokenize import segments

STORE = str(Path(__file__).resolve().parents[3] / "model_store")
FOUND = frozenset({("NP", "the dog"), ("NN", "dog"), ("S", "the dog barks")})


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("NP the dog", True),
        ("NP|NML the dog|a dog", True),
        ("NP dog", False),
        ("not NP dog", True),
        ("not NP the dog", False),
        ("none CAPTION VP", True),
        ("none CAPTION NP", False),
        ("tokens the dog barks", True),
        ("tokens the dog", False),
    ],
)
def test_a_demand_holds_or_not(line: str, holds: bool) -> None:
    demand = Demand.of(line)
    assert demand is not None
    assert demand.holds(FOUND, "the dog barks") == holds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hi.\n  NP Hi", "a class such as `[particles]` before any text, got `Hi.`, in line 1"),
        ("[a]\nHi.\n  NP\n", "demands such as `NP the dog`, got `NP`, in line 3"),
        ("[a]\n  NP Hi\n", "a text and below it demands such as `NP the dog`, got `NP Hi`"),
        ("[a]\nHi.\nHo.\n  NP Ho", "a demand below `Hi.`, got none, in line 3"),
        ("[a]\nHi.", "a demand below `Hi.`, got none"),
    ],
)
def test_a_malformed_suite_is_refused_with_its_line(text: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        list(read_suite(text, "mine.txt"))
    assert expected in str(caught.value)
    assert "mine.txt" in str(caught.value)


def test_the_suite_has_ten_sentences_of_each_of_ten_classes_once() -> None:
    cases = suite_of([])
    assert len({case.text for case in cases}) == len(cases)
    counts = Counter(case.group for case in cases)
    assert len(counts) == 10
    assert min(counts.values()) >= 10


def test_every_phrase_of_the_suite_is_one_of_its_tokens() -> None:
    wrong = []
    for case in suite_of([]):
        tokens = " || ".join(" ".join(t.text for t in s.tokens) for s in segments(case.text))
        for demand in case.demands:
            if demand.kind == "tokens":
                wrong += [demand.line] * (demand.phrases[0] != tokens)
            elif not any(f" {phrase} " in f" {tokens} " for phrase in demand.phrases):
                wrong += [demand.line] * (demand.kind != "none")
    assert wrong == []


def test_scores_count_sentences_and_demands_by_class() -> None:
    text = "[a]\nThe dog barked.\n  NP The dog\n  VP The dog\n[b]\nShe sang.\n  NP She\n"
    scores = run_suite(Parser.load("en", STORE), read_suite(text, "mine.txt"))
    a, b, everything = scores.rows()
    assert (a["right"], a["held"], a["demands"]) == (0, 1, 2)
    assert (b["right_share"], everything["held"], everything["sentences"]) == (100.0, 2, 2)
    (failed,) = scores.as_json()["failed"]
    assert (failed["text"], failed["failed"]) == ("The dog barked.", ["VP The dog"])
    assert failed["trees"][0].startswith("(S (NP (DT The)")


def test_the_command_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("[birds]\nShe sang.\n  NP She\n", encoding="utf-8")
    assert main(["evaluate", "en", str(path), "--suite", "--store", STORE]) == 0
    assert "birds" in capsys.readouterr().out
    assert main(["evaluate", "en", str(path), "--suite", "--json", "--store", STORE]) == 0
    assert json.loads(capsys.readouterr().out)["classes"][-1]["right"] == 1


def test_without_trees_and_suite_the_command_was_not_understood(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["evaluate", "en", "--store", STORE]) == 2
    assert "--suite" in capsys.readouterr().err
