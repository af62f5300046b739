"""Flags that every command line tool has."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from lpcfg.cli import main


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lpcfg {version('lpcfg')}\n"


@pytest.mark.parametrize("command", [[], ["parse"], ["models"], ["models", "show"], ["lm"]])
def test_h_is_help_everywhere(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "-h"]) == 0
    short = capsys.readouterr().out
    assert main([*command, "--help"]) == 0
    assert capsys.readouterr().out == short
    assert "Example: " in " ".join(short.split())


def test_a_shell_completes_commands() -> None:
    asked = {"_LPCFG_COMPLETE": "complete_bash", "COMP_WORDS": "lpcfg ser", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "from lpcfg.cli import main; main()"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["serve"]
