"""Every example of the documentation runs, and every public name has one."""

import doctest
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.serving import Process

import lpcfg
from lpcfg.api.trained import TrainedModel

ROOT = Path(__file__).resolve().parents[2]
SERVICE = "http://127.0.0.1:8000"
PAGE = ROOT / "docs" / "api.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
DOCUMENTED = [TrainedModel if name == "Model" else getattr(lpcfg, name) for name in lpcfg.__all__]


@pytest.fixture(scope="module")
def parser() -> lpcfg.Parser:
    """Load the default model, which the examples show."""
    return lpcfg.load("en", store=ROOT / "model_store")


def examples_in(thing: object) -> Iterator[doctest.DocTest]:
    """Find the examples of a function, a module, or a class with its methods."""
    finder = doctest.DocTestFinder(exclude_empty=True, recurse=isinstance(thing, type))
    for found in finder.find(thing, globs={}):
        if found.examples:
            yield found


TESTS = [
    *examples_in(lpcfg),
    *(test for thing in DOCUMENTED if callable(thing) for test in examples_in(thing)),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the default model in a process of its own, and return the address."""
    with Process("en", ROOT / "model_store") as process:
        yield f"http://127.0.0.1:{process.ready().port}"


def run(test: doctest.DocTest, parser: lpcfg.Parser, folder: Path, address: str) -> None:
    """Run examples with what they take for granted: a parser, a folder and a service."""
    for example in test.examples:
        example.source = example.source.replace(SERVICE, address)
    test.globs = {"lpcfg": lpcfg, "parser": parser, "folder": folder}
    told: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=told.append)
    assert result.failed == 0, "".join(told)


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_examples_in_docstrings_hold(
    test: doctest.DocTest, parser: lpcfg.Parser, tmp_path: Path, address: str
) -> None:
    run(test, parser, tmp_path, address)


def test_the_page_of_the_api_holds(
    parser: lpcfg.Parser, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    text = PAGE.read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(text, {}, "api.md", str(PAGE), 0)
    assert len(test.examples) > 30
    run(test, parser, tmp_path, address)


def test_the_python_of_the_readme_prints_a_tree(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out.startswith("(S (NP (DT The) (NN cat)) (VP ")


def test_every_public_name_has_an_example() -> None:
    sources = [example.source for test in TESTS for example in test.examples]
    page = doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8"))
    code = "\n".join([*sources, *(example.source for example in page)])
    assert not [name for name in lpcfg.__all__ if not re.search(rf"\blpcfg\.{name}\b", code)]


def test_public_names_are_imported_on_demand_and_are_what_they_say() -> None:
    assert set(lpcfg.__all__) <= set(dir(lpcfg))
    for name in lpcfg.__all__:
        value = getattr(lpcfg, name)
        assert not isinstance(value, types.ModuleType)
        assert value.__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lpcfg.nothing  # noqa: B018
