"""The models of a service: how it starts with them, and how they are replaced."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from lpcfg.cli import main
from lpcfg.models.store.files import Bundle
from lpcfg.models.store.versions import load, publish


def bundle_of(store: Path) -> Bundle:
    stored = load("small@1", store)
    facts = stored.manifest["facts"]
    assert isinstance(facts, Mapping)
    return Bundle(dict(stored.tensors), stored.grammar, facts, stored.card)


def unusable(bundle: Bundle) -> Bundle:
    """A bundle that is published and verified like any other, and would crash a kernel."""
    start = bundle.tensors["lexicon.word_start"][:40].copy()
    return replace(bundle, tensors={**bundle.tensors, "lexicon.word_start": start})


SAID = "/small/1/tensors.safetensors `lexicon.word_start`: expected a tensor of I32 and "


@pytest.fixture
def broken(store: Path, tmp_path: Path) -> Path:
    """A store whose only version is sealed and unusable."""
    publish(tmp_path, "small", unusable(bundle_of(store)))
    return tmp_path


def test_a_service_with_an_unusable_model_ends_with_the_reason(broken: Path) -> None:
    command = [sys.executable, "-m", "lpcfg", "serve", "--model", "small", "--store", str(broken)]
    run = subprocess.run(
        [*command, "--port", "0"], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 1
    assert f"\nlpcfg: error: {broken}{SAID}" in run.stderr
    assert '"event": "not ready"' in run.stderr


def test_verify_and_check_refuse_what_cannot_be_used(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["models", "verify", "small"], ["serve", "--check", "--model", "small"]):
        assert main([*command, "--store", str(broken)]) == 1
        assert f"lpcfg: error: {broken}{SAID}" in capsys.readouterr().err


def test_check_prints_what_would_be_served(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--check", "--model", "small", "--store", str(store)]) == 0
    found = load("small", store).reference
    assert capsys.readouterr().out == f"small@1  {found.hash}\n"
