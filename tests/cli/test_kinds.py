"""Commands for models of any kind: what they share, and what each kind refuses."""

import json
import sys
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer

from lpcfg import cli
from lpcfg.base.executors import Inline
from lpcfg.cli import corpus, main
from lpcfg.kinds.registry import all_kinds
from tests import toy_kind
from tests.kinds.dependencies import small
from tests.small_models import SMALL

MODELS = str(Path(__file__).resolve().parents[2] / "model_store")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(one) for one in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def length(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Register the toy kind, make the command anew, and return a folder with gold lengths."""
    toy_kind.register(monkeypatch)
    monkeypatch.setattr(cli, "app", cli.commands())
    gold = tmp_path / "gold.txt"
    gold.write_text("4\tCats sleep.\n5\tThe dog barked.\n9\tGo.\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def arcs(tmp_path: Path) -> Path:
    """Write a file of dependency trees."""
    file = tmp_path / "arcs.conllu"
    file.write_text(small.as_conllu(small.sentences(3, 0)), encoding="utf-8")
    return file


# A kind without a line in the commands ------------------------------------------------------------


def test_a_registered_kind_is_trained_and_evaluated_by_its_group(
    length: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--store", length / "store")
    gold = length / "gold.txt"
    code, out, err = run(capsys, "length", "train", gold, "--name", "mine", *where)
    assert (code, out, err) == (0, "adds 1\n", "lpcfg: learned from one\n")
    code, out, _ = run(
        capsys, "length", "train", gold, "--name", "mine", "--least", "7", "--json", *where
    )
    assert (code, json.loads(out)) == (0, {"name": "mine", "version": 2, "more": 7})
    for group in (["length"], []):
        code, out, _ = run(capsys, *group, "evaluate", "mine@1", gold, "--json", *where)
        assert code == 0
        assert json.loads(out) == {
            "model": "mine@1",
            "accuracy": pytest.approx(200 / 3),
            "sentences": 3,
        }
    assert main(["length", "--help"]) == 0
    assert "Learn length models from gold data" in capsys.readouterr().out


def test_a_registered_kind_is_compared_shown_verified_and_drawn(
    length: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = toy_kind.publish_length(length / "store", more=0)
    second = toy_kind.publish_length(length / "store", more=1)
    where = ("--store", length / "store")
    code, out, _ = run(capsys, "compare", first, second, length / "gold.txt", *where)
    assert code == 0
    assert "gain in accuracy" in out
    assert "2 better, 0 worse, 1 alike" in out
    for command in (["models", "show"], ["models", "verify"]):
        assert run(capsys, *command, first, *where)[0] == 0
    code, out, _ = run(capsys, "report", first, "--treebank", length / "gold.txt", *where)
    assert code == 0
    assert "<h2>Scores on gold.txt</h2>" in out
    assert "<td>accuracy</td><td>0</td>" in out
    assert "<td>kind</td><td>length</td>" in out


# Options ------------------------------------------------------------------------------------------


def test_options_of_another_kind_are_refused_by_name(
    arcs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("evaluate", "en-dep", arcs, "--objective", "max-rule", "--store", MODELS)
    assert run(capsys, *command) == (
        2,
        "",
        "lpcfg: error: Invalid value: a dependency model has no option --objective: leave it out "
        "(see `lpcfg evaluate --help`)\n",
    )


@pytest.mark.parametrize("command", ["parse", "evaluate", "compare", "report"])
def test_every_option_of_every_kind_is_a_flag(command: str) -> None:
    commands: Any = typer.main.get_command(cli.app)
    flags = {flag for one in commands.commands[command].params for flag in one.opts}
    for kind in all_kinds():
        options = kind.options if command == "parse" else kind.evaluating
        assert {f"--{one.name.replace('_', '-')}" for one in fields(options)} <= flags


def test_flags_have_the_help_limits_and_choices_of_options(
    length: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["length", "train", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "<words|letters>" in shown
    assert "What is counted." in shown
    assert "x>=0" in shown
    for wrong, problem in ((("--unit", "feet"), "'feet' is not one of"), (("--least", "-1"), "0")):
        code, _, err = run(capsys, "length", "train", length / "gold.txt", "--name", "x", *wrong)
        assert code == 2
        assert f"Invalid value for '{wrong[0]}'" in err
        assert problem in err


# Kinds that are there -----------------------------------------------------------------------------


def test_evaluate_takes_dependencies_as_its_group_does(
    arcs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for command in (["evaluate"], ["dep", "evaluate"]):
        code, out, _ = run(capsys, *command, "en-dep", arcs, "--json", "--store", MODELS)
        assert code == 0
        printed.append(json.loads(out))
        del printed[-1]["sentences_per_second"]
    assert printed[0] == printed[1]
    assert printed[0]["model"] == "en-dep@1"
    assert {"uas", "las", "complete", "calibration_error"} <= {*printed[0]}


def test_two_dependency_models_are_compared_on_standard_input(
    arcs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO(arcs.read_text(encoding="utf-8")))
    code, out, _ = run(capsys, "compare", "en-dep", "en-dep", "-", "--store", MODELS)
    assert code == 0
    assert "gain in UAS" in out
    assert "0 better, 0 worse, 3 alike" in out


def test_models_of_two_kinds_are_not_compared(
    arcs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "compare", "en@1", "en-dep", arcs, "--store", MODELS)
    assert (code, out) == (1, "")
    assert err == (
        "lpcfg: error: expected two models of one kind, got en@1, a constituency model, and "
        "en-dep@1, a dependency model: name another model\n"
    )


def test_a_group_refuses_models_of_another_kind(
    arcs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "dep", "evaluate", "en@1", arcs, "--store", MODELS)
    assert (code, out) == (1, "")
    assert "expected a dependency model, got en@1, a constituency model" in err


@pytest.mark.parametrize("command", ["evaluate", "dep evaluate"])
def test_evaluation_without_gold_data_is_wrong_usage(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *command.split(), "en-dep", "--store", MODELS)
    assert code == 2
    assert "Invalid value for FILE: name at least one (see" in err


# Answers ------------------------------------------------------------------------------------------


def test_a_registered_kind_answers_text_and_collections(
    length: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(corpus, "Processes", lambda _: Inline())  # which know the kind, as tests do
    model = toy_kind.publish_length(length / "store")
    text, where = length / "text.txt", ("--store", length / "store")
    text.write_text("Cats sleep. The dog barked.", encoding="utf-8")
    for group in (["length", "parse"], ["parse"]):
        assert run(capsys, *group, model, text, *where) == (0, "3\n4\n", "")
        _, out, _ = run(capsys, *group, model, text, "--unit", "letters", "--json", *where)
        assert [json.loads(line)["number"] for line in out.splitlines()] == [10, 13]
    into = ("--out", length / "out", "--jobs", "1", "--least", "4", *where)
    code, out, _ = run(capsys, "length", "parse", model, text, *into)
    assert (code, out) == (0, "1 documents, 2 sentences\n")
    rows = (length / "out" / "trees" / "text.txt.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(row)["number"] for row in rows] == [4, 4]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("en-dep", "--k", "2"), "a dependency model has no option --k: leave it out"),
        (("en-dep", "--output", "svg"), "a dependency model prints no svg: choose conllu or json"),
        (("en-dep", "--json", "--marginals"), "a dependency model has none: leave it out"),
        (("en-dep", "--out", "out", "--output", "svg"), "of files of a dependency model, got svg"),
        (("en-dep", "--out", "out", "--rescore"), "a dependency model has no option --rescore"),
        (("en", "--out", "out", "--k", "2"), "files hold one tree a sentence: omit --k"),
        (("en", "--output", "tagged"), "a constituency model prints no tagged: choose ptb or "),
    ],
)
def test_what_a_kind_cannot_do_is_wrong_usage(
    arguments: tuple[str, ...],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "parse", *arguments, "--store", MODELS)
    assert (code, out) == (2, "")
    assert problem in err
    assert not list(tmp_path.iterdir())


def test_tags_for_a_model_that_takes_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "tagged.txt"
    text.write_text("The/DT cat/NN\n", encoding="utf-8")
    command = ("parse", "en-dep", text, "--input", "tagged", "--store", MODELS)
    code, out, err = run(capsys, *command)
    assert (code, out) == (1, "")
    assert "expected tokens without tags, got some" in err


def test_text_is_cut_by_the_language_of_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, where = tmp_path / "text.txt", ("--store", tmp_path)
    text.write_text("Der Termin ist am 3. Oktober bei Hrn. Müller bzw. Frau Klein.", "utf-8")
    options = ("--name", "de", "--language", "german", "--estimator", "counts", *where)
    assert run(capsys, "tag", "train", SMALL, *options)[0] == 0
    for command in (["tag", "apply"], ["parse"]):
        code, out, _ = run(capsys, *command, "de", text, *where)
        assert code == 0
        (line,) = out.splitlines()  # not four, as English has it
        assert line.startswith("Der/")
