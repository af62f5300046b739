"""The `lpcfg` command as people and scripts meet it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from lpcfg.cli import app, main
from lpcfg.store import Bundle, publish

HEAVY = ("numpy", "numba", "scipy", "fastapi", "starlette", "uvicorn", "nltk", "sentencex")


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command and group below this one, with its full name."""
    yield name, command
    for child, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, f"{name} {child}")


COMMANDS = dict(commands(typer.main.get_command(app), "lpcfg"))


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with mine@1 and mine@2."""
    folder = tmp_path / "store"
    bundle = Bundle({"c": np.arange(3.0)}, {"symbols": ["S"]}, {"scores": {"f1": 84.5}}, "# Mine\n")
    publish(folder, "mine", bundle)
    publish(folder, "mine", bundle)
    return str(folder)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "lpcfg", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example_of_its_own(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*name.split()[1:], "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"Example: {name}" in text


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from lpcfg.cli import main; main(['--help']); "
        f"sys.exit(', '.join(sorted(set({HEAVY}) & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_nothing_asked_shows_the_help_and_is_wrong_usage(
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
    assert done.stderr.startswith(f"lpcfg: error: expected a model `yours` in {store}, found none")
    assert done.stderr.count("\n") == 1


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
    assert (done.returncode, done.stderr) == (1, "")


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


def test_models_show_prints_card_and_facts(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "show", "mine@1", "--store", store]) == 0
    text = capsys.readouterr().out
    assert "# Mine\n" in text
    assert "scores.f1  84.5\n" in text


def test_models_show_as_json_is_the_manifest_and_its_hash(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "show", "mine", "--store", store, "--json"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert (manifest["name"], manifest["version"]) == ("mine", 2)
    assert len(manifest["hash"]) == 64


def test_models_verify_finds_an_altered_file(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "verify", "mine@1", "--store", store]) == 0
    assert "CARD.md" in capsys.readouterr().out
    card = Path(store) / "mine" / "1" / "CARD.md"
    card.chmod(0o644)
    card.write_text("# Fake\n", encoding="utf-8")
    assert main(["models", "verify", "mine@1", "--store", store]) == 1
    assert "CARD.md" in capsys.readouterr().err


def test_models_remove_wants_the_version_where_there_are_two(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "remove", "mine", "--store", store]) == 1
    assert "expected NAME@VERSION to remove" in capsys.readouterr().err
    assert main(["models", "remove", "mine@1", "--store", store]) == 0
    assert capsys.readouterr().out == "removed mine@1\n"
    assert not (Path(store) / "mine" / "1").exists()
