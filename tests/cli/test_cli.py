"""The `lpcfg` command as people and scripts meet it."""

import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import typer

from lpcfg.cli import app, main
from lpcfg.cli.lm import Estimator as LmEstimator
from lpcfg.cli.train import Estimator
from lpcfg.kinds.tags.kind import TaggerTraining
from lpcfg.lm import estimate as lm
from lpcfg.store.files import Bundle
from lpcfg.store.versions import publish
from lpcfg.training.estimators.registry import ESTIMATORS
from lpcfg.trees.brackets import parse_tree, read

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = EXAMPLES / "small.mrg"
CHECKOUT = EXAMPLES.parent / "model_store"
HEAVY = ("numpy", "numba", "scipy", "fastapi", "starlette", "uvicorn", "nltk", "sentencex")


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """List every command and group below this one, with its full name."""
    yield name, command
    for child, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, f"{name} {child}")


COMMANDS = dict(commands(typer.main.get_command(app), "lpcfg"))


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Make a store with mine@1 and mine@2."""
    folder = tmp_path / "store"
    bundle = Bundle({"c": np.arange(3.0)}, {"symbols": ["S"]}, {"scores": {"f1": 84.5}}, "# Mine\n")
    publish(folder, "mine", bundle)
    publish(folder, "mine", bundle)
    return str(folder)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "lpcfg", *arguments], capture_output=True, text=True, check=False
    )


@contextmanager
def talking(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run the command in a process one talks with, its output buffered as in any pipe."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-m", "lpcfg", *arguments],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=environment,
        # A shell's background job ignores interrupts, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as command:
        yield command


def ask(command: "subprocess.Popen[str]", line: str) -> str:
    """Send a line, and return the answer while there may be more lines."""
    assert command.stdin is not None
    assert command.stdout is not None
    command.stdin.write(line + "\n")
    command.stdin.flush()
    return command.stdout.readline()


@pytest.fixture(scope="module")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a store with `small`, the treebank PCFG of examples/small.mrg."""
    folder = str(tmp_path_factory.mktemp("trained"))
    assert main(["train", str(SMALL), "--name", "small", "--store", folder]) == 0
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example_of_its_own(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*name.split()[1:], "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(rf"Example: .*\b{name}\b", text)


@pytest.mark.parametrize(
    "name", [name for name, one in COMMANDS.items() if not hasattr(one, "commands")]
)
def test_every_command_that_answers_prints_json(name: str) -> None:
    without = {
        "lpcfg serve",  # whose logs are JSON
        "lpcfg dep expand",  # CoNLL-U in, brackets out
        "lpcfg dep collapse",  # and back
    }
    options = {option for one in COMMANDS[name].params for option in one.opts}
    assert ("--json" in options) is (name not in without)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from lpcfg.cli import main; main(['--help']); "
        f"sys.exit(', '.join(sorted(set({HEAVY}) & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_no_arguments_show_the_help_and_are_wrong_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    assert "Usage: lpcfg" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense' (see `lpcfg --help`)"),
        (["models", "show"], "Missing argument 'MODEL' (see `lpcfg models show --help`)"),
        (["models", "list", "--k"], "No such option: --k (see `lpcfg models list --help`)"),
        (
            ["parse", "m", "--objective", "fun"],
            "Invalid value for '--objective': 'fun' is not one of 'max-rule', 'max-marginal', "
            "'max-product', 'max-spans' (see `lpcfg parse --help`)",
        ),
        (
            ["parse", "m", "--marginals"],
            "Invalid value for --marginals: trees have no room for them: add --json "
            "(see `lpcfg parse --help`)",
        ),
        (
            ["parse", "m", "--output", "svg", "--json"],
            "Invalid value for --json: --output svg prints no JSON: leave one of both out "
            "(see `lpcfg parse --help`)",
        ),
        (
            ["parse", "m", "--jobs", "2"],
            "Invalid value for --jobs: only collections are shared out among workers: add --out "
            "DIR (see `lpcfg parse --help`)",
        ),
        (
            ["models", "show", "m", "--card", "--json"],
            "Invalid value for --json: --card prints Markdown: leave one of both out "
            "(see `lpcfg models show --help`)",
        ),
        (
            ["models", "list", "--store", ""],
            "Invalid value for '--store': expected a folder or a URL, got nothing: name one or "
            "omit it (see `lpcfg models list --help`)",
        ),
        (
            ["sample", "g.toml", "--enumerate", "--count", "2"],
            "Invalid value for --enumerate: all trees are printed: omit --count and --seed "
            "(see `lpcfg sample --help`)",
        ),
        (
            ["report", "m", "--tags", "gold"],
            "Invalid value for --tags: there is nothing to parse: add --treebank "
            "(see `lpcfg report --help`)",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"lpcfg: error: {message}\n")


def test_a_failure_is_one_line_and_exit_code_1(store: str) -> None:
    done = run("models", "show", "yours", "--store", store)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"lpcfg: error: expected a model `yours` in {store} or {CHECKOUT}, found none: {store} has "
        f"mine; {CHECKOUT} has en, en-dep: publish it, or name another model or store\n"
    )


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        (["parse", "en"], "(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))\n"),
        (["parse", "en@1", "--json"], '"status": "parsed"'),
        (["compare", "en", "en@1", str(SMALL)], "en@2"),
        (["evaluate", "en", str(SMALL)], "en@2\n"),
        (["tree-probability", "en", str(SMALL)], "-"),
        (["report", "en@1", "--json"], '"page": null'),
        (["models", "show", "en@1"], "en@1\n"),
        (["models", "verify", "en-dep"], "manifest.json"),
        (["dep", "parse", "en-dep"], "# text = The cat sat.\n"),
        (["parse", "en-dep"], "# text = The cat sat.\n"),
        (["train", str(SMALL), "--base", "en", "--name", "ours"], "ours@1"),
        (["serve", "--check"], "en@2  "),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_a_store_without_the_model_leaves_it_to_the_package(
    command: list[str],
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for how in ([*command, "--store", str(tmp_path / "given")], command):
        monkeypatch.setattr(sys, "stdin", io.StringIO("The cat sat."))
        assert main(how) == 0
        assert printed in capsys.readouterr().out
        monkeypatch.setenv("LPCFG_MODEL_STORE", str(tmp_path / "set"))


def test_listing_without_a_store_shows_the_packages_models_too(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def listed(*arguments: str) -> list[str]:
        assert main(["models", "list", *arguments]) == 0
        return [line.split()[0] for line in capsys.readouterr().out.splitlines()]

    assert listed("--store", store) == ["mine@1", "mine@2"]
    assert listed("--store", str(tmp_path / "empty")) == []
    # a wheel's default store is a folder in the current one
    monkeypatch.setattr("lpcfg.store.places._BESIDE_THE_CODE", tmp_path / "none")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(store, "model_store")
    assert listed() == ["mine@1", "mine@2", "en@1", "en@2", "en-dep@1"]


def test_a_wrong_setting_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LPCFG_PORT", "http")
    assert main(["models", "list"]) == 1
    assert capsys.readouterr().err.startswith("lpcfg: error: expected LPCFG_PORT to be a valid int")


def test_a_closed_pipe_ends_the_command_quietly(store: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "lpcfg", "models", "list", "--store", store],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_an_empty_one(closed: str, small_store: str) -> None:
    command = f'"{sys.executable}" -m lpcfg parse small --store "{small_store}" {closed}'
    done = subprocess.run(
        ["sh", "-c", command], input="Hello !", capture_output=True, text=True, check=False
    )
    expected = "(INTJ (UH Hello) (. !))\n" if closed == "2>&-" else ""
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_a_file_name_that_is_not_utf8_is_printed_escaped(small_store: str) -> None:
    done = run("parse", "small", "\udcff.txt", "--store", small_store)
    assert done.returncode == 1
    assert done.stderr == (
        "lpcfg: error: expected a readable file, got 'No such file or directory' at \\udcff.txt: "
        "check the path and its permissions\n"
    )


def test_interrupting_a_command_ends_it_quietly(small_store: str) -> None:
    with talking("parse", "small", "--input", "tokens", "--store", small_store) as command:
        assert ask(command, "Hello !") == "(INTJ (UH Hello) (. !))\n"
        command.send_signal(signal.SIGINT)
        assert command.wait() == 130
        assert command.stderr is not None
        assert command.stderr.read() == ""


def test_models_list_names_every_version(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list", "--store", store]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["mine@1", "mine@2"]


def test_models_list_as_json_is_one_object_a_line(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "list", "--store", store, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(model["name"], model["version"]) for model in found] == [("mine", 1), ("mine", 2)]
    assert found[0]["facts"] == {"scores": {"f1": 84.5}}
    assert found[0]["problem"] is None


def test_models_show_prints_facts_and_the_card_when_asked(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "show", "mine@1", "--store", store]) == 0
    assert re.search(r"^scores\.f1 +84\.5$", capsys.readouterr().out, re.MULTILINE)
    assert main(["models", "show", "mine@1", "--card", "--store", store]) == 0
    assert capsys.readouterr().out == "# Mine\n"


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("en", {"dev.f1", "sizes.trees", "treebank.licence"}),
        ("en-dep", {"kind", "licence", "dev.uas", "dev.las"}),
    ],
)
def test_models_show_fits_a_screen(
    model: str, rows: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "show", model]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert rows <= {line.split()[0] for line in lines if line}


def test_models_show_as_json_is_the_manifest_and_its_hash(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "show", "mine", "--store", store, "--json"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert (manifest["name"], manifest["version"]) == ("mine", 2)
    assert len(manifest["hash"]) == 64


def test_models_verify_finds_an_altered_file(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = shutil.copytree(small_store, tmp_path / "store")
    assert main(["models", "verify", "small@1", "--store", str(store)]) == 0
    assert "CARD.md" in capsys.readouterr().out
    card = store / "small" / "1" / "CARD.md"
    card.chmod(0o644)
    card.write_text("# Fake\n", encoding="utf-8")
    assert main(["models", "verify", "small@1", "--store", str(store)]) == 1
    assert "CARD.md" in capsys.readouterr().err


def test_models_verify_takes_every_model_of_the_package() -> None:
    for model in sorted(CHECKOUT.glob("*/[0-9]*")):
        assert main(["models", "verify", str(model)]) == 0


def test_models_remove_wants_the_version_where_there_are_two(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "remove", "mine", "--store", store]) == 1
    assert "expected NAME@VERSION to remove" in capsys.readouterr().err
    assert main(["models", "remove", "mine@1", "--store", store]) == 0
    assert capsys.readouterr().out == "removed mine@1\n"
    assert not (Path(store) / "mine" / "1").exists()
    assert main(["models", "remove", "mine", "--store", store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"removed": "mine@2"}
    assert main(["models", "list", "--store", store]) == 0
    assert capsys.readouterr() == ("", f"lpcfg: there are no models in {store}\n")


def test_train_leaves_bad_trees_out_if_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = tmp_path / "bank.mrg"
    bank.write_text(f"(S (NP (DT a)\n{SMALL.read_text()}\n(S)\n", encoding="utf-8")
    command = ["train", str(bank), "--name", "mine", "--store", str(tmp_path), "--json"]
    command += ["--estimator", "counts"]
    assert main(command) == 1
    assert f"lpcfg: error: {bank}:" in capsys.readouterr().err
    assert main([*command, "--skip-bad"]) == 0
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert told["sizes"]["trees"] == 64
    first, last = told["treebank"]["left_out"]
    assert first.startswith(f"{bank}:1:")
    assert "empty bracket" in last
    assert f"lpcfg: left out 2 malformed trees:\nlpcfg: {first}\nlpcfg: {last}\n" in shown.err


def test_train_publishes_and_prints_name_stages_and_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", str(SMALL), "--name", "mine", "--store", str(tmp_path), "--json"]
    assert main([*command, "--estimator", "counts", "--dev", str(SMALL)]) == 0
    shown = capsys.readouterr()
    printed = json.loads(shown.out)
    assert (printed["name"], printed["version"]) == ("mine", 1)
    assert printed["sizes"]["trees"] == 64
    assert {"seconds", "peak_bytes"} <= set(printed["stages"][0])
    assert printed["dev"]["f1"] > 90  # of its own trees
    assert shown.err.startswith("read\n")
    assert f"\nlpcfg: {printed['warning']}\n" in shown.err
    assert "64 trees are too few" in printed["warning"]
    assert main(["models", "verify", "mine@1", "--store", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--estimator", "magic"], " for '--estimator': 'magic' is not one of 'counts', "),
        (["--states", "0"], " for '--states'"),
        (["--seed", "-1"], " for '--seed'"),
        (["--workers", "0"], " for '--workers'"),
        (["--rare-threshold", "-1"], " for '--rare-threshold'"),
        (["--smoothing", "maybe"], " for '--smoothing': 'maybe' is not one of 'on', 'none'"),
        (["--cut", "1"], ": expected `cut` from 0 up to but not 1, got 1.0"),
        (["--cut", "nan"], ": expected `cut` from 0 up to but not 1, got nan"),
        (
            ["--estimator", "counts", "--states", "4"],
            ": expected a setting of counts, got `states`",
        ),
        (["--name", "No Name"], " for --name: expected a model name of 1 to 64 characters"),
    ],
)
def test_impossible_options_of_train_are_wrong_usage(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", str(SMALL), "--name", "mine", "--store", str(tmp_path), *options]
    assert main(command) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"lpcfg: error: Invalid value{message}")
    assert shown.err.endswith("(see `lpcfg train --help`)\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "expected a readable TOML file, got 'No such file or directory' at"),
        ("seed = -1", "{file}: expected `seed` of at least 0, got -1"),
        ('[[members]]\nestimator = "magic"', "{file}: expected an estimator among counts, "),
        ("[[members]]\nstates = 0", "{file}: expected `states` of at least 1, got 0"),
    ],
)
def test_an_invalid_configuration_file_is_a_failure(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, store = tmp_path / "config.toml", tmp_path / "store"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    command = ["train", str(SMALL), "--name", "mine", "--store", str(store)]
    assert main([*command, "--config", str(file)]) == 1
    assert capsys.readouterr().err.startswith(f"lpcfg: error: {message.format(file=file)}")
    assert not store.exists()


def test_train_fails_before_it_learns_if_it_cannot_publish(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    command = ["train", str(SMALL), "--name", "mine", "--store", str(tmp_path / "file" / "store")]
    assert main(command) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"lpcfg: error: cannot publish mine into {tmp_path}/file/store: Not a ")
    assert shown.count("\n") == 1


def test_the_option_lists_every_estimator() -> None:
    assert get_args(Estimator) == tuple(ESTIMATORS)
    (tagging,) = (one for one in fields(TaggerTraining) if one.name == "estimator")
    assert tagging.metadata["choices"] == tuple(ESTIMATORS)
    assert get_args(LmEstimator) == get_args(lm.EstimatorName)


def test_options_come_before_the_configuration_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('seed = 7\nrare_threshold = 5\n[[members]]\nestimator = "counts"\n')
    command = ["train", str(SMALL), "--name", "mine", "--store", str(tmp_path), "--json"]
    assert main([*command, "--config", str(file), "--rare-threshold", "2"]) == 0
    configuration = json.loads(capsys.readouterr().out)["configuration"]
    assert (configuration["seed"], configuration["rare_threshold"]) == (7, 2)


def test_a_new_store_has_the_vectors_of_the_default_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank, config = tmp_path / "bank.mrg", tmp_path / "config.toml"
    bank.write_text(SMALL.read_text(encoding="utf-8") * 2, encoding="utf-8")  # enough for a layer
    config.write_text(
        '[[members]]\nestimator = "spectral"\nstates = 2\n'
        "[rescoring]\nfolds = 2\nbits = 12\nwidth = 4\ndimensions = 4\n"
    )
    command = ["train", str(bank), "--name", "mine", "--store", str(tmp_path / "new"), "--json"]
    for options, source in (([], "en@"), (["--words", "none"], "the treebank")):
        assert main([*command, "--config", str(config), *options]) == 0
        told = json.loads(capsys.readouterr().out)["rescoring"]["vectors_from"]
        assert told.startswith(source)


def test_evaluate_prints_the_keys_that_scripts_rely_on(
    small_store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", "small", str(SMALL), "--store", small_store, "--json"]
    assert main([*command, "--tags", "gold", "--max-length", "9"]) == 0
    printed = json.loads(capsys.readouterr().out)
    keys = "precision recall f1 exact_match tag_accuracy sentences failures sentences_per_second"
    keys += " calibration_error negative_share evalb_f1"
    assert set(keys.split()) <= set(printed)
    assert printed["sentences"] == sum(len(tree.leaves()) <= 9 for tree in read(SMALL))
    assert printed["tag_accuracy"] == 100
    assert printed["failures"] == 0


def test_compare_shows_two_models_and_how_sure_the_gain_is(
    small_store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", "small", "small", str(SMALL), "--store", small_store]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split() == ["small@1", "small@1"]
    assert "gain in F1           +0.00, on 95 % of resamples from +0.00 to +0.00" in shown
    assert "0 better, 0 worse, 64 alike" in shown
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["models"][0]["f1"] == printed["models"][1]["f1"] > 0
    assert (printed["gain"], printed["same"]) == (0, 64)


def test_compare_says_when_trees_have_no_words(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "traces.mrg"
    file.write_text("(S (-NONE- *))\n", encoding="utf-8")
    assert main(["compare", "small", "small", str(file), "--store", small_store]) == 1
    assert f"expected trees with words in {file}, got none" in capsys.readouterr().err


def test_evaluate_says_when_trees_have_no_words(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "traces.mrg"
    file.write_text("(S (-NONE- *))\n", encoding="utf-8")
    assert main(["evaluate", "small", str(file), "--store", small_store]) == 1
    assert f"expected trees with words in {file}, got none" in capsys.readouterr().err


def test_evaluate_says_when_no_tree_is_short_enough(
    small_store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", "small", str(SMALL), "--store", small_store, "--max-length", "1"]
    assert main(command) == 1
    assert "expected trees of at most 1 tokens, got longer ones only, 64" in capsys.readouterr().err


def test_parse_prints_one_tree_for_every_line_of_tokens(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("The cat sleeps .\n\nThe dog saw the cat .\n", encoding="utf-8")
    assert main(["parse", "small", str(file), "--input", "tokens", "--store", small_store]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .))",
        "",
        "(S (NP (DT The) (NN dog)) (VP (VBD saw) (NP (DT the) (NN cat))) (. .))",
    ]
    assert shown.err == (
        f"lpcfg: sentence 2 of {file}: failed: there are no tokens: send at least one word\n"
    )


def test_parse_reads_raw_text_from_standard_input_and_prints_json(
    small_store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("The cat sleeps. (The dog sings.)"))
    command = ["parse", "small", "--output", "json", "--marginals", "--store", small_store]
    assert main(command) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["parses"][0]["tree"].startswith("(S (NP (DT The) (NN cat))")
    assert [token["text"] for token in second["tokens"]][:2] == ["(", "The"]
    assert second["start"] == 16
    (whole,) = (s for s in first["marginals"]["spans"] if (s["label"], s["end"]) == ("S", 4))
    assert 0.9 < whole["probability"] <= 1


@pytest.mark.parametrize("option", [["--json"], ["--json", "--output", "json"]])
@pytest.mark.parametrize("is_piped", [True, False])
def test_offsets_count_the_characters_of_the_file(
    option: list[str], is_piped: bool, small_store: str, tmp_path: Path
) -> None:
    text = "The cat sleeps.\r\n\r\nThe dog\rsings."
    file = tmp_path / "text.gz"
    file.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    command = [sys.executable, "-m", "lpcfg", "parse", "small", "--store", small_store, *option]
    with file.open("rb") as stream:
        done = subprocess.run(
            [*command, "-" if is_piped else str(file)],
            stdin=stream,
            capture_output=True,
            check=False,
        )
    first, second = map(json.loads, done.stdout.splitlines())
    assert (first["start"], first["end"]) == (0, 15)
    assert second["text"] == text[second["start"] : second["end"]] == "The dog\rsings."


def test_parse_gives_k_distinct_trees_and_an_empty_line(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("Peter saw the man with the telescope .\n", encoding="utf-8")
    command = ["parse", "small", str(file), "--input", "tokens", "--k", "3"]
    assert main([*command, "--store", small_store]) == 0
    *trees, last = capsys.readouterr().out.splitlines()
    assert len(set(trees)) == 3
    assert last == ""


def test_parse_keeps_the_tags_it_is_given(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("The/DT and/or/NN sleeps/VBZ ./.\n", encoding="utf-8")
    assert main(["parse", "small", str(file), "--input", "tagged", "--store", small_store]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert [(leaf.word, leaf.label) for leaf in parse_tree(line).leaves()] == [
        ("The", "DT"),
        ("and/or", "NN"),
        ("sleeps", "VBZ"),
        (".", "."),
    ]


def test_parse_says_once_which_tags_the_model_does_not_have(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("The/DT dog/N sleeps/VBZ ./.\n" + "The/XX dog/N sleeps/VBZ ./.\n" * 2)
    command = ["parse", "small", str(file), "--input", "tagged", "--store", small_store]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 3
    assert err == (
        "lpcfg: the model does not have 2 of the tags given: N (3), XX (2): words with them got "
        "tags of the model's own\n"
    )


def test_parse_recognises_universal_tags(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("The/DET dog/NOUN sleeps/VERB ./PUNCT\n" * 2)
    assert main(["parse", "small", str(file), "--input", "tagged", "--store", small_store]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert err.startswith("lpcfg: the model does not have 4 of the tags given: DET (2), NOUN (2), ")
    assert err.endswith("tags of Universal Dependencies: give the treebank's own, or none\n")
    assert err.count("\n") == 1


CONLLU = "# text = Cats don't sleep.\n1\tCats\t_\t_\t_\t_\t_\t_\t_\t_\n" + (
    "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n2\tdo\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "3\tn't\t_\t_\t_\t_\t_\t_\t_\t_\n4\tsleep\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
    "5\t.\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
)


@pytest.mark.parametrize(
    ("content", "kind", "cure"),
    [
        (CONLLU, "CoNLL-U", "say --input conllu"),
        (
            "(S (NP (DT The) (NN dog)))\n",
            "Penn brackets",
            "ask `lpcfg tree-probability` about trees, or",
        ),
        ("<html><p>The dog.</p></html>", "HTML", "take the markup out first"),
    ],
)
@pytest.mark.parametrize("form", ["text", "lines", "tokens", "tagged"])
def test_parse_refuses_markup_that_would_be_parsed_as_words(
    form: str,
    content: str,
    kind: str,
    cure: str,
    small_store: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file"
    file.write_text(content, encoding="utf-8")
    assert main(["parse", "small", str(file), "--input", form, "--store", small_store]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"lpcfg: error: expected plain text, got {kind} in {file}: {cure}")


def test_parse_reads_the_words_of_conllu(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.conllu"
    file.write_text(CONLLU, encoding="utf-8")
    command = ["parse", "small", str(file), "--input", "conllu", "--json", "--store", small_store]
    assert main(command) == 0
    answer = json.loads(capsys.readouterr().out)
    told = [(token["text"], token["start"], token["end"]) for token in answer["tokens"]]
    assert told == [
        ("Cats", 0, 4), ("do", 5, 7), ("n't", 7, 10), ("sleep", 11, 16), (".", 16, 17),
    ]  # fmt: skip
    assert answer["text"] == "Cats don't sleep."


def test_parse_takes_a_line_for_one_sentence(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("The cat sleeps. The dog sings.\nHello!\n", encoding="utf-8")
    command = ["parse", "small", str(file), "--input", "lines", "--store", small_store]
    assert main(command) == 0
    first, second = map(parse_tree, capsys.readouterr().out.splitlines())
    assert first.tokens() == ["The", "cat", "sleeps", ".", "The", "dog", "sings", "."]
    assert second.tokens() == ["Hello", "!"]


def test_parse_reads_files_and_folders_in_order(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "b.txt").write_text("Hello ! The dog sings.", encoding="utf-8")
    (folder / "a.txt").write_text("The cat sleeps.", encoding="utf-8")
    (tmp_path / "last.txt").write_text("\n", encoding="utf-8")
    (tmp_path / "z.txt").write_text("The king sings.", encoding="utf-8")
    arguments = [str(folder), str(tmp_path / "last.txt"), str(tmp_path / "z.txt")]
    assert main(["parse", "small", *arguments, "--store", small_store]) == 0
    trees = map(parse_tree, capsys.readouterr().out.splitlines())
    assert [tree.tokens()[-2] for tree in trees] == ["sleeps", "Hello", "sings", "sings"]


def test_parse_draws_trees_for_latex(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("Hello !", encoding="utf-8")
    assert main(["parse", "small", str(file), "--output", "latex", "--store", small_store]) == 0
    assert capsys.readouterr().out == (
        r"\begin{forest} [{INTJ} [{UH} [{Hello}]] [{.} [{!}]]] \end{forest}" + "\n"
    )


def test_parse_draws_one_picture_a_line(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sentences.txt"
    file.write_text("The cat sleeps . Hello !", encoding="utf-8")
    assert main(["parse", "small", str(file), "--output", "svg", "--store", small_store]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:4] for line in lines] == ["<svg", "<svg"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"The/DT cat", ["--input", "tagged"], "expected word/TAG in line 1, got `cat`"),
        (b"caf\xe9", [], "expected UTF-8, got the byte 0xe9"),
        (b"\x1f\x8b torn", [], "expected a whole compressed file"),
    ],
)
def test_parse_refuses_unreadable_input(
    content: bytes,
    options: list[str],
    message: str,
    small_store: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "sentences.txt"
    file.write_bytes(content)
    assert main(["parse", "small", str(file), "--store", small_store, *options]) == 1
    assert message in capsys.readouterr().err


def test_score_prints_log_probabilities_or_the_reason(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trees.mrg"
    known = "(ROOT (S (NP-SBJ (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))"
    file.write_text(f"{known}\n(S (XX cat) (YY cat))\n(S (-NONE- *))\n", encoding="utf-8")
    assert main(["tree-probability", "small", str(file), "--store", small_store, "--json"]) == 0
    good, bad, empty = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert good["sign"] == 1
    assert good["reason"] is None
    difference = good["log_probability"] - good["sentence_log_probability"]
    assert good["conditional_log_probability"] == pytest.approx(difference)
    assert -1 < difference <= 0
    assert (bad["log_probability"], bad["sign"]) == (None, 0)
    assert bad["reason"] == "the grammar does not have the label `XX`, the label `YY`"
    assert empty["reason"] == "nothing is left of the tree without its traces"
    assert main(["tree-probability", "small", str(file), "--store", small_store]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [float(log) for log in lines[0]] == pytest.approx(
        [good["log_probability"], good["sentence_log_probability"], difference], abs=1e-6
    )  # printed with six decimals
    assert lines[1][0] == "-inf"
    assert lines[2] == ["-inf", "-", "-", empty["reason"]]
    assert main(["score", "small", str(file), "--store", small_store]) == 0  # the former name
    assert [line.split("\t") for line in capsys.readouterr().out.splitlines()] == lines
    assert main(["--help"]) == 0
    listed = [line.split()[1:2] for line in capsys.readouterr().out.splitlines()]
    assert ["tree-probability"] in listed
    assert ["score"] not in listed


def test_tree_probability_says_where_brackets_are_wrong(
    small_store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trees.mrg"
    file.write_text("(S (NP (DT The)\n", encoding="utf-8")
    assert main(["tree-probability", "small", str(file), "--store", small_store]) == 1
    assert f"lpcfg: error: {file}:" in capsys.readouterr().err


def test_language_models_are_trained_and_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sees the dog\nthe dog sees a cat\na cat sleeps\n" * 4)
    model = str(tmp_path / "lm.npz")
    command = ["lm", "train", str(text), "--dev", str(text), "--output", model, "--states", "2"]
    assert main([*command, "--json"]) == 0
    shown = capsys.readouterr()
    printed = json.loads(shown.out)
    assert (printed["path"], printed["states"]) == (model, 2)
    assert shown.err.startswith("EM over r: 1 of 100\n")
    assert main(["lm", "evaluate", model, str(text), "--json"]) == 0
    perplexity = json.loads(capsys.readouterr().out)["perplexity"]
    assert perplexity == pytest.approx(printed["dev_perplexity"])
    packed = tmp_path / "text.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    assert main(["lm", "evaluate", model, str(packed), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"perplexity": perplexity}


@pytest.mark.parametrize(
    "options",
    [["--estimator", "guess"], ["--states", "0"], ["--seed", "-1"], ["--min-count", "0"]],
    ids=lambda options: options[0],
)
def test_impossible_options_of_lm_train_are_wrong_usage(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["lm", "train", str(SMALL), "--dev", str(SMALL), "--output", str(tmp_path / "lm.npz")]
    assert main([*command, *options]) == 2
    assert f"Invalid value for '{options[0]}'" in capsys.readouterr().err


def test_lm_train_fails_before_it_learns_if_it_cannot_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "no" / "lm.npz"
    command = ["lm", "train", str(SMALL), "--dev", str(SMALL), "--output", str(nowhere)]
    assert main(command) == 1
    assert capsys.readouterr().err == (
        f"lpcfg: error: expected a file to write, got {nowhere}, but there is no folder "
        f"{nowhere.parent}: make it or choose another\n"
    )
