"""The package alone parses and trains, and an error names the extra that is absent."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SMALL = ROOT / "examples" / "small.mrg"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = {"numba", "numpy", "safetensors", "scipy", "sentencex", "threadpoolctl", "llvmlite"}
ABSENT = (
    *("dask", "distributed", "fastapi", "fsspec", "httpx", "httptools", "nltk", "pandas"),
    *("prometheus_client", "pyarrow", "pydantic", "pydantic_settings", "rich", "s3fs", "spacy"),
    *("starlette", "structlog", "typer", "uvicorn", "uvloop"),
)
BLOCKED = f"""
import os, sys
for name in list(os.environ):
    if name.upper().startswith("LPCFG_"):
        del os.environ[name]

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
import lpcfg
"""


def run(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run code where no library of an extra can be imported."""
    command = [sys.executable, "-c", BLOCKED + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_package_alone_parses_and_trains() -> None:
    code = """
print(lpcfg.load("en")("It works.")[0])
print(lpcfg.load("en-dep")("It works.")[0].arcs.heads)
print(lpcfg.train(sys.argv[1], estimator="counts").parser()("The dog sang.")[0].status)
"""
    done = run(code, str(SMALL))
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "(S (NP (PRP It)) (VP (VBZ works)) (. .))",
        "(2, 0, 2)",
        "parsed",
    ]


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("lpcfg.Client", "client"),
        ("lpcfg.load('en', store='s3://bucket/models')", "remote"),
        ("lpcfg.Tree.from_string('(X (Y z))').to_nltk()", "nltk"),
        ("os.environ['LPCFG_THREADS'] = '1'; lpcfg.load('en')", "cli"),
    ],
)
def test_an_error_names_the_extra_that_is_absent(code: str, extra: str) -> None:
    done = run(code)
    assert done.returncode == 1
    assert f"pip install 'lpcfg[{extra}]'" in done.stderr.splitlines()[-1]
    assert extra in PROJECT["optional-dependencies"]


def test_the_command_without_its_extra_says_so_in_one_line() -> None:
    done = run("from lpcfg.__main__ import main; sys.exit(main())")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line == (
        "lpcfg: error: expected the packages that commands need, found no typer: "
        "pip install 'lpcfg[cli]'"
    )


def test_what_the_package_alone_needs_is_all_it_asks_for() -> None:
    asked = {one.partition(">")[0].partition("[")[0] for one in PROJECT["dependencies"]}
    assert asked <= CORE
