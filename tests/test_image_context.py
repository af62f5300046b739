"""The files sent to build the image: all that the Dockerfile copies, and nothing else.

The build of an image sees only the files that `.dockerignore` leaves in. Both files are read here
as Docker reads them, so that no daemon is needed.
"""

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_house import tracked

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8")
WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def cleaned(pattern: str) -> str:
    """Return a pattern or a name relative to the context, without what changes nothing."""
    return posixpath.normpath(pattern).lstrip("/") or "."


def expression(pattern: str) -> re.Pattern[str]:
    """Translate a pattern of Docker, whose `**` stands for any number of folders."""
    parts = re.findall(r"\*\*/|\*\*|\[[^]]+\]|\\.|.", cleaned(pattern))
    return re.compile("".join(WILDCARDS.get(one) or as_it_is(one) for one in parts))


def as_it_is(part: str) -> str:
    """Translate what is no wildcard: a set of characters, an escaped one, or one for itself."""
    return part if part.startswith("[") and len(part) > 1 else re.escape(part[-1])


def matches(pattern: re.Pattern[str], path: str) -> bool:
    """Return True if a pattern matches this file or a folder that it lies in."""
    parts = path.split("/")
    return any(pattern.fullmatch("/".join(parts[:end])) for end in range(1, len(parts) + 1))


@dataclass(frozen=True)
class Rule:
    """A line of a `.dockerignore`."""

    back: bool  # it puts files back in
    text: str
    pattern: re.Pattern[str]


def rules(text: str) -> list[Rule]:
    """Read a `.dockerignore`."""
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    found = [(line.startswith("!"), line.removeprefix("!").strip()) for line in lines if line]
    return [Rule(back, cleaned(one), expression(one)) for back, one in found]


def is_sent(path: str, read: Sequence[Rule]) -> bool:
    """Return True if a file is sent: the last rule that matches it or a folder around it decides.

    Docker goes down the folders. It asks a rule only where it would change something: what puts a
    folder back in that was not out says nothing of the files in it. It does not enter a folder that
    is out, unless a rule that puts files back in names something there in so many letters.
    """
    matched = [False] * len(read)
    parts = path.split("/")
    out = False
    for end in range(1, len(parts) + 1):
        here, out = "/".join(parts[:end]), False
        for at, rule in enumerate(read):
            if not matched[at] and rule.back == out:
                matched[at] = rule.pattern.fullmatch(here) is not None
            out = not rule.back if matched[at] else out
        if out and not any(one.back and f"{one.text}/".startswith(f"{here}/") for one in read):
            return False
    return not out


def sent(paths: Iterable[str], ignored: str) -> set[str]:
    """List the files that are sent."""
    read = rules(ignored)
    return {path for path in paths if is_sent(path, read)}


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a Dockerfile: the name in capitals, and what follows it."""
    lines = [line for line in text.splitlines() if not re.match(r"\s*(#|$)", line)]
    for line in re.sub(r"\\\n", " ", "\n".join(lines)).splitlines():
        name, _, rest = line.strip().partition(" ")
        yield name.upper(), rest.strip()


def copied(text: str, given: Mapping[str, str]) -> list[str]:
    """List the sources of every COPY and ADD in every stage that are looked up in the context.

    `given` are the build arguments; a stage knows those that it declares. A source that uses
    another variable raises KeyError, and a heredoc ValueError: neither can be evaluated here.
    """
    found: list[str] = []
    outside: dict[str, str] = {}  # before the first stage
    known = outside
    for name, rest in instructions(text):
        if name == "FROM":
            known = {}
        elif name == "ARG":
            for one in shlex.split(rest):
                argument, _, default = one.partition("=")
                known[argument] = given.get(argument, default or outside.get(argument, ""))
        elif name in ("COPY", "ADD"):
            found += sources(filled(rest, known))
    return found


def filled(text: str, known: Mapping[str, str]) -> str:
    """Put in the values of variables."""
    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda match: known[match[1] or match[2]], text)


def sources(rest: str) -> list[str]:
    """List the sources of one COPY or ADD that are looked up in the context."""
    flags, words = "", rest
    while words.startswith("--"):
        flag, _, words = words.partition(" ")
        flags, words = f"{flags} {flag}", words.lstrip()
    if "<<" in words:
        raise ValueError(f"expected names of files, got a heredoc: {rest}")
    names = json.loads(words) if words.startswith("[") else shlex.split(words)
    return [] if "--from=" in flags else [one for one in names[:-1] if "://" not in one]


def taken(source: str, paths: Iterable[str]) -> set[str]:
    """List the files that one source of a COPY stands for."""
    if cleaned(source) == ".":
        return set(paths)
    pattern = expression(source)
    return {path for path in paths if matches(pattern, path)}


def project() -> set[str]:
    """List the files of the project, relative to its folder."""
    return {path.relative_to(ROOT).as_posix() for path in tracked()}


ARGUMENT = re.compile(r"--build-arg[\s=]+(\w+)=(?:([\w.:/-]*\w)|\"?\$)")


def arguments_in_use() -> set[tuple[str, str]]:
    """List the build arguments that scripts, manifests and documents name.

    The value is empty where the shell finds it.
    """
    files = [ROOT / "Makefile", ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    files += [path for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    found = {pair for path in files for pair in ARGUMENT.findall(path.read_text(encoding="utf-8"))}
    return found | set(compose_build().get("args", {}).items())


def compose_build() -> dict[str, Any]:
    """Return how compose builds the image."""
    text = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    (service,) = yaml.safe_load(text)["services"].values()
    build = service["build"]
    assert isinstance(build, dict)
    return build


BUILDS = [{}, *({name: value} for name, value in sorted(arguments_in_use()) if value)]
SOURCES = sorted({source for given in BUILDS for source in copied(DOCKERFILE, given)})


def test_builds_with_other_locked_packages_are_among_those_tried() -> None:
    assert {"LOCK": "requirements-batch.lock"} in BUILDS
    assert {"requirements.lock", "requirements-batch.lock", "service"} <= set(SOURCES)


@pytest.mark.parametrize("source", SOURCES)
def test_all_that_the_dockerfile_copies_is_tracked_and_sent(source: str) -> None:
    wanted = taken(source, project())
    assert wanted
    assert wanted - sent(wanted, IGNORED) == set()


def test_what_is_put_back_in_is_named_without_wildcards() -> None:
    """Builders differ in whether they look for such names in folders that are out."""
    assert not [one.text for one in rules(IGNORED) if one.back and re.search(r"[*?\[]", one.text)]


LEFTOVERS = {
    ".git/config",
    ".venv/bin/python",
    ".coverage",
    "build/lib/lpcfg/cli/main.py",
    "dist/lpcfg-0.2.0-py3-none-any.whl",
    "service/lpcfg/__pycache__/cores.cpython-311.pyc",
    "service/lpcfg/serve/__pycache__/app.cpython-311.pyc",
    "service/lpcfg.egg-info/PKG-INFO",
}
"""Files that lie about in a checkout in use."""


def test_nothing_is_sent_that_no_build_copies() -> None:
    paths = project()
    wanted = {path for source in SOURCES for path in taken(source, paths)}
    assert sent(paths | LEFTOVERS, IGNORED) == wanted
    assert {path.split("/")[0] for path in wanted}.isdisjoint({"tests", "benchmarks", "docs"})


def test_the_dockerfile_declares_every_build_argument_in_use() -> None:
    declared = {rest.partition("=")[0] for name, rest in instructions(DOCKERFILE) if name == "ARG"}
    used = {name for name, _ in arguments_in_use()}
    assert used >= {"BASE", "REVISION", "CREATED", "LOCK", "KERNELS_FOR"}
    assert used <= declared


def test_compose_builds_from_the_folder_of_the_project() -> None:
    build = compose_build()
    assert (ROOT / "deploy" / build["context"]).resolve() == ROOT
    assert build.keys() <= {"context", "args"}  # the Dockerfile and the ignore file are those there


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("a", ["a", "a/b/c"], ["b/a", "ab"]),
        ("/a/", ["a", "a/b"], ["b/a"]),
        ("./a/../b", ["b", "b/c"], ["a/b"]),
        ("*", ["a", "a/b/c"], []),
        ("*/a", ["b/a", "b/a/c"], ["a", "b/c/a"]),
        ("*.py", ["a.py", "a.py/b"], ["b/a.py", "a.pyc"]),
        ("**/*.py", ["a.py", "b/a.py", "b/c/a.py"], ["a.pyc", "b/apy"]),
        ("**/a", ["a", "b/a", "b/c/a/d"], ["ab", "b/ca"]),
        ("a/**/b", ["a/b", "a/c/b", "a/c/d/b/e"], ["a/cb", "c/a/b"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "b/a"]),
        ("a?", ["ab"], ["a", "a/b", "abc"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x"]),
        ("[^a]x", ["bx"], ["ax"]),
        (r"\*", ["*", "*/a"], ["a"]),
        ("a+(b).c", ["a+(b).c"], ["aab.c", "a+(b)xc"]),
    ],
)
def test_patterns_match_as_in_docker(pattern: str, inside: list[str], outside: list[str]) -> None:
    read = expression(pattern)
    assert [path for path in [*inside, *outside] if matches(read, path)] == inside


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        ("", ["a/b", "a/c", "d"]),
        ("# a\n\n  a  \n", ["d"]),
        ("a\n!a/b", ["a/b", "d"]),  # put back in although its folder is out
        ("*\n! a/c\n!d", ["a/c", "d"]),
        ("!a/b\na", ["d"]),  # the last one decides
        ("a/b\n!a", ["a/c", "d"]),  # the folder was not out
        ("a\n!*/b", ["d"]),  # not looked for in a folder that is out
        ("*\n!a\na/b", ["a/c"]),
        ("**\n!/a\n**/c", ["a/b"]),
        ("a#b\n #d", ["a/b", "a/c", "d"]),  # no comment unless in the first column
    ],
)
def test_the_last_pattern_that_matches_decides(ignored: str, left: list[str]) -> None:
    assert sorted(sent(["a/b", "a/c", "d"], ignored)) == left


STAGES = r"""# syntax
ARG A=outside
FROM ${A} AS one
ARG A
ARG B=b.txt C
COPY --chmod=555 $A ${B} \
    # a comment between
    x* /target/
copy ["with space", "${C}", "./"]
ADD https://example.test/file local.tar /
FROM ${A}
ARG B="two words"
COPY --link --from=one /opt /opt
COPY "${B}" .
"""


def test_sources_of_all_stages_are_found_with_their_arguments() -> None:
    rest = ["x*", "with space", "c", "local.tar"]
    assert copied(STAGES, {"C": "c"}) == ["outside", "b.txt", *rest, "two words"]
    assert copied(STAGES, {"A": "a", "B": "b", "C": "c"}) == ["a", "b", *rest, "b"]


def test_sources_that_cannot_be_known_are_refused() -> None:
    with pytest.raises(KeyError, match="A"):
        copied("ARG A=1\nFROM x\nCOPY $A .", {"A": "2"})
    with pytest.raises(ValueError, match="heredoc"):
        copied("FROM x\nCOPY <<END /target\ntext\nEND", {})


def test_a_source_stands_for_the_files_below_it() -> None:
    paths = {"a/b", "a/c/d", "ab", "x.lock"}
    assert taken("a", paths) == taken("./a/", paths) == {"a/b", "a/c/d"}
    assert taken("*.lock", paths) == {"x.lock"}
    assert taken(".", paths) == paths
    assert taken("none", paths) == set()
