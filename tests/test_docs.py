"""Every command, link and notebook cell of the documentation works as it is shown."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from benchmarks.serving import Process

from lpcfg.cli import app
from lpcfg.kinds.constituency.predict import Parser
from lpcfg.kinds.constituency.readout import Labels

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
NUMBER = re.compile(r"-?\d+\.\d+")
CURL = """
import sys, urllib.request
arguments = sys.argv[1:]
url = next(one for one in arguments if "/v1/" in one).replace("localhost:8000", {address!r})
body = arguments[arguments.index("-d") + 1].encode()
request = urllib.request.Request("http://" + url, body, {{"content-type": "application/json"}})
sys.stdout.write(urllib.request.urlopen(request).read().decode())
"""


def blocks(page: Path) -> Iterator[str]:
    """Yield the fenced blocks of a page that hold commands or a session."""
    text = page.read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language in ("", "sh", "console"):
            yield block


def sessions(page: Path) -> list[tuple[str, list[str]]]:
    """List the commands behind `$` on a page, each with the lines that it is shown to print."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks(page):
        if "$ " not in block:
            continue
        for line in block.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            elif found:
                found[-1][1].append(line)
    return found


def same(shown: str, printed: str) -> bool:
    """Compare two lines; numbers with a fraction may differ by a thousandth, as processors do."""
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(float(a) == pytest.approx(float(b), rel=1e-3, abs=1e-3) for a, b in pairs)


def shows(shown: list[str], printed: list[str]) -> bool:
    """Compare lines; `…` stands for any lines, and hashes are not compared."""
    shown = [re.sub(r"\b[0-9a-f]{64}\b", "HASH", line) for line in shown]
    printed = [re.sub(r"\b[0-9a-f]{64}\b", "HASH", line) for line in printed]
    if not shown:
        return not printed
    if shown[0] == "…":
        return any(shows(shown[1:], printed[k:]) for k in range(len(printed) + 1))
    return bool(printed) and same(shown[0], printed[0]) and shows(shown[1:], printed[1:])


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Set up an environment with `lpcfg`, a store with `en`, and a `curl` for the service."""
    folder = tmp_path_factory.mktemp("shell")
    shutil.copytree(ROOT / "model_store" / "en", folder / "store" / "en")
    with Process("en", ROOT / "model_store") as process:
        address = f"127.0.0.1:{process.ready().port}"
        (folder / "curl.py").write_text(CURL.format(address=address), encoding="utf-8")
        for name, target in (("lpcfg", "-m lpcfg"), ("curl", folder / "curl.py")):
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {target} "$@"\n', "utf-8")
            script.chmod(0o755)
        yield {
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "service"),
            "LPCFG_MODEL_STORE": str(folder / "store"),
        }


@pytest.mark.parametrize("page", [page for page in PAGES if sessions(page)], ids=lambda p: p.name)
def test_sessions_print_what_is_shown(page: Path, shell: dict[str, str]) -> None:
    for command, shown in sessions(page):
        ran = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, env=shell, capture_output=True, text=True
        )
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
        assert shows(shown, ran.stdout.splitlines()), f"{command}\n{ran.stdout}"


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the lines of a page's blocks that are commands without output, as words."""
    for block in blocks(page):
        if "$ " in block:
            continue
        for line in block.replace("\\\n", " ").splitlines():
            command = re.sub(r"^([A-Z_]+=\S* )*", "", line)
            if re.match(r"(lpcfg|python|make) ", command):
                yield shlex.split(command, comments=True)


@cache
def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def understood(words: list[str]) -> None:
    """Look the options of a `lpcfg` command up, without running it."""
    command: Any = typer.main.get_command(app)  # of click, or of the click inside typer
    rest = words
    while hasattr(command, "commands"):
        assert rest, words
        assert rest[0] in command.commands, words
        command, rest = command.commands[rest[0]], rest[1:]
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    given = {word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"}
    assert given <= {*known, "--help"}, f"lpcfg {shlex.join(words)}: {given - known}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_other_commands_exist_with_their_options(page: Path) -> None:
    for words in commands(page):
        if words[0] == "lpcfg":
            understood(words[1 : words.index("|")] if "|" in words else words[1:])
        elif words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= targets(), words
        elif words[:2] == ["python", "-m"] and words[2].startswith("benchmarks."):
            source = (ROOT / (words[2].replace(".", "/") + ".py")).read_text(encoding="utf-8")
            for option in (word for word in words if word.startswith("--")):
                assert f'"{option}"' in source, words


def links(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    yield from re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(page: Path) -> set[str]:
    """List the anchors that headings of a page have."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", [*PAGES, DOCS / "tutorial.ipynb"], ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        if ":" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def exists(name: str) -> bool:
    """Check that `lpcfg.room.module`, or a name inside of it, is there."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        path = ROOT / "service" / Path(*parts[:size])
        sources = [path.with_suffix(".py"), path / "__init__.py"]
        for source in (one for one in sources if one.is_file()):
            inside = parts[size : size + 1]
            return all(re.search(rf"\b{one}\b", source.read_text("utf-8")) for one in inside)
    return False


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "model_store" / "FORMAT.md"], ids=lambda page: page.name
)
def test_modules_and_names_of_the_package_exist(page: Path) -> None:
    text = re.sub(r"https?://\S+", "", page.read_text(encoding="utf-8"))
    named = set(re.findall(r"`(lpcfg(?:\.\w+)+)", text))
    assert not {name for name in named if not exists(name)}


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {(ROOT / link.partition("#")[0]).resolve() for link in links(ROOT / "README.md")}
    assert {*DOCS.glob("*.md"), *DOCS.glob("*.ipynb")} <= linked


def test_python_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPCFG_MODEL_STORE", str(ROOT / "model_store"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), {})
    assert f"This prints `{printed.getvalue().strip()}`" in text


def test_the_tutorial_runs_and_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    notebook = json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
        streams = (one["text"] for one in cell["outputs"] if one["output_type"] == "stream")
        shown = "".join(line for text in streams for line in text)
        assert shows(shown.splitlines(), printed.getvalue().splitlines()), printed.getvalue()


def test_the_page_explains_the_labels_that_the_docs_explain() -> None:
    text = (DOCS / "labels.md").read_text(encoding="utf-8")
    glossary = ROOT / "service" / "lpcfg" / "serve" / "page" / "glossary.js"
    tables = re.findall(r"= \{\n(.*?)\n\};", glossary.read_text(encoding="utf-8"), re.DOTALL)
    for part, table in zip(text.split("## Tags of words"), tables, strict=True):
        explained = set(re.findall(r"^\| (\S+) \| ", part, re.MULTILINE)) - {"label", "tag"}
        known = set(re.findall(r'^  "?([^\s":]+|:)"?: "', table, re.MULTILINE))
        assert len(explained) > 20
        assert explained <= known


def test_every_label_and_tag_of_the_default_model_is_explained() -> None:
    model = Parser.load("en", ROOT / "model_store").model
    text = (DOCS / "labels.md").read_text(encoding="utf-8")
    labels, tags = text.split("## Tags of words")
    explained = [set(re.findall(r"^\| (\S+) \|", part, re.MULTILINE)) for part in (labels, tags)]
    known = Labels.of(model.grammar).ids
    assert {name for name, is_tag in known if not is_tag} <= explained[0]
    assert {name for name, is_tag in known if is_tag} <= explained[1]
