"""The rules of the house, read from the code itself."""

import ast
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from lpcfg.base import errors
from lpcfg.kinds.registry import KINDS
from tests.needs import lacking

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "service" / "lpcfg"

# A room imports from the rows above its own and from itself, never sideways or down. The longest
# name that a module falls under is its room.
ROOMS = (
    {"base", "store.places"},
    {"protocol", "settings", "engine.objectives"},
    {"kinds.constituency.options"},
    {"text"},
    {"trees"},
    {"grammar", "words"},
    {"engine", "theory"},
    {"store"},
    {"kinds"},
    {"kinds.constituency"},
    {"training", "client"},
    {"kinds.dependencies", "kinds.tags"},
    {"kinds.constituency.kind"},
    {"kinds.registry"},
    {"predict"},
    {"serve"},
    {"lm", "report"},
    {"api"},
    {"spacy"},
    {"cli"},
    {"__main__", "__init__"},
)
# The same, inside rooms: modules and folders of a room in rows.
INSIDE = {
    "base": (
        {"errors", "collector", "cores"},
        {"jit", "options", "extras"},
        {"cancel", "executors", "prefetch", "urls"},
        {"files"},
    ),
    "trees": (
        # a tree reads and draws itself, with the modules that do it imported on demand
        {"tree", "brackets", "draw"},
        {"normalize", "binarize"},
        {"style"},
        {"inspect"},
    ),
    "text": (
        {"files", "markup", "languages", "folding", "abbreviations"},
        {"sentences"},
        {"tokenize"},
    ),
    "grammar": ({"tables"}, {"tagging", "known", "spelling"}, {"lexicon"}),
    "engine": ({"exact", "pruned"}, {"rescoring", "warmup"}),
    "kinds.constituency": (
        {"surprisal", "members", "results", "brackets"},
        {"layer"},
        {"checks"},
        {"model"},
        {"readout", "tree_probability", "known"},
        {"predict", "answer"},
        {"loading"},
        {"evaluate", "suite"},
    ),
    "predict": (
        {"forms", "tables", "engine"},
        {"chunks"},
        {"documents"},
        {"tasks"},
        {"output"},
        {"worker"},
        {"checkpoint"},
        {"run"},
    ),
    "training": (
        {"stages"},
        {"data"},
        {"estimators", "tagger"},
        {"rescoring"},
        {"config"},
        {"distributed", "summary", "adapt", "words", "plan"},
        {"learner"},
        {"rescoring.run"},
        {"pipeline"},
    ),
    "kinds.tags": (
        {"chains", "kernel"},
        {"model"},
        {"predict"},
        {"answer", "evaluate"},
        {"train", "kind"},
    ),
    "serve": (
        {"http.encoder", "http.problems", "http.logs", "memory", "scheduling.phases"},
        {"http.keys"},
        {"http.context", "scheduling"},
        {"http.traces"},
        {"served"},
        {"metrics", "jobs"},
        {"state"},
        {"http", "edge"},
        {"routes"},
        {"app"},
        {"edge.server"},
    ),
}
# What a room may not import although it stands in a row above.
BELOW_PROTOCOL = {"text", "trees", "grammar", "engine", "store", "kinds", "kinds.constituency"}
NEVER = {"serve": {"training"}, "client": BELOW_PROTOCOL, "protocol": BELOW_PROTOCOL}
ROW = {room: row for row, rooms in enumerate(ROOMS) for room in rooms}
WEB_ONLY = {"fastapi", "starlette", "uvicorn"}
SETTINGS_ONLY = {"serve", "cli", "api"}
SEES_WHETHER_ANY_IS_SET = Path("api/stores.py")
PICKLERS = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
LARGEST_FILE = 5_000_000  # bytes; only models may be larger
LONG_FUNCTION = 35  # lines
# A docstring says what is done, beginning with a verb; none of these words begins such a sentence.
RIDDLES = re.compile(r"(What|Who|Whose|Whether|That|Where|So many|Such|Nothing|Nobody)\b")
# Nor does a function's begin with one of these, with a symbol, or with a plural or `returns`.
NO_VERBS = re.compile(
    r"(The|An?|Every|Each|All|Any|One|Two|This|These|Its|Their|How|Which|Why|When|If|It|There|True|"
    r"Of|On|In|At|By|For|From|With|Without|As|To|And|But|No|None|Not|Under|Over|Between|Per)\b"
    r"|[^A-Z]|[A-Z]+[^a-z]|\w*[^s\W]s\b|\w+ of\b"
)
VERBS_LIKE_NOUNS = re.compile(r"(Focus|Bias)\b")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
MOST_WORDS = 12  # in the name of a test


@cache
def sources() -> dict[Path, ast.Module]:
    """Parse every module of the package, by its path relative to the package."""
    return {
        path.relative_to(PACKAGE): ast.parse(path.read_text(encoding="utf-8"), str(path))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def room(path: Path) -> str:
    """Name the room of a module by its path."""
    return room_of(modules(path)) or path.parts[0]


def room_of(parts: Sequence[str]) -> str | None:
    """Find the longest name in ROOMS that a module falls under."""
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in ROW), None)


def imports(path: Path, tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the dotted names that this module imports anywhere, and the lines."""
    inside = ("lpcfg", *path.with_suffix("").parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(inside[: -node.level]) + "." if node.level else ""
            module = (base + (node.module or "")).rstrip(".")
            if module == "lpcfg":
                yield from ((f"lpcfg.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield module, node.lineno


def all_imports() -> Iterator[tuple[Path, str, str]]:
    """Yield (module, dotted name it imports, where)."""
    for path, tree in sources().items():
        for name, line in imports(path, tree):
            yield path, name, f"service/lpcfg/{path}:{line}"


def test_every_module_has_a_place_in_the_rooms() -> None:
    assert not [str(path) for path in sources() if room_of(modules(path)) is None]
    assert not [
        str(path)
        for path in sources()
        if room(path) in INSIDE and path.stem != "__init__" and place(modules(path)) is None
    ]


def modules(path: Path) -> tuple[str, ...]:
    return path.with_suffix("").parts


def place(parts: Sequence[str]) -> tuple[str, int] | None:
    """Find the longest entry of INSIDE that a module falls under, and its row."""
    found = None
    home = room_of(parts) or ""
    inner = parts[len(home.split(".")) :]
    for row, names in enumerate(INSIDE[home]):
        for name in names:
            entry = tuple(name.split("."))
            longer = found is None or len(entry) > len(found[0].split("."))
            if tuple(inner[: len(entry)]) == entry and longer:
                found = name, row
    return found


def test_imports_point_one_way() -> None:
    wrong = []
    for path, name, where in all_imports():
        parts = name.split(".")
        if parts[0] != "lpcfg" or len(parts) == 1:
            continue
        imported = room_of(parts[1:]) or parts[1]
        if imported == room(path):
            continue
        if ROW[imported] >= ROW[room(path)] or imported in NEVER.get(room(path), ()):
            wrong.append(f"{where}: {room(path)} imports {name}")
    assert not wrong


def test_imports_inside_rooms_point_one_way() -> None:
    wrong = []
    for path, name, where in all_imports():
        parts = name.split(".")[1:]
        if room(path) not in INSIDE or room_of(parts) != room(path):
            continue
        importer, imported = place(modules(path)), place(parts)
        if importer is None or imported is None or importer[0] == imported[0]:
            continue
        if imported[1] > importer[1]:
            wrong.append(f"{where}: {importer[0]} imports {name}")
    assert not wrong


def test_only_the_package_itself_re_exports_names() -> None:
    """Every other __init__ holds a docstring alone, but for the clients and the main function."""
    assert not [
        str(path)
        for path, tree in sources().items()
        if path.name == "__init__.py"
        and room(path) not in {"__init__", "cli", "client"}
        and any(not isinstance(node, ast.Expr) for node in tree.body)
    ]


def test_only_web_imports_the_web_framework() -> None:
    assert not [
        f"{where}: {name}"
        for path, name, where in all_imports()
        if name.split(".")[0] in WEB_ONLY and room(path) != "serve"
    ]


def test_only_web_and_cli_read_settings_or_the_environment() -> None:
    assert not [
        f"{where}: {name}"
        for path, name, where in all_imports()
        if name.startswith("lpcfg.settings") and room(path) not in SETTINGS_ONLY
    ]
    assert not [
        f"service/lpcfg/{path}:{node.lineno}"
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in {"environ", "getenv"}
        and path != SEES_WHETHER_ANY_IS_SET
    ]


def test_nothing_is_pickled() -> None:
    assert not [
        f"{where}: {name}"
        for _, name, where in all_imports()
        if name.split(".")[0] in PICKLERS or name.endswith(".pickle")
    ]
    assert not [
        f"service/lpcfg/{path}:{node.value.lineno}"
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle"
    ]


def handlers() -> Iterator[tuple[ast.ExceptHandler, str]]:
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                yield node, f"service/lpcfg/{path}:{node.lineno}"


def test_no_handler_catches_everything() -> None:
    """BaseException may be caught only to be raised again; executors raise it where one waits."""
    wrong = []
    for handler, where in handlers():
        names = (
            {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)}
            if handler.type
            else {""}
        )
        raises = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
        everything = names & {"", "Exception"} or ("BaseException" in names and not raises)
        if everything and "base/executors.py" not in where:
            wrong.append(where)
    assert not wrong


def test_input_is_not_checked_by_assert() -> None:
    assert not [
        f"service/lpcfg/{path}:{node.lineno}"
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]


def test_nine_functions_in_ten_are_short() -> None:
    lengths = {
        f"service/lpcfg/{path}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1
        for path, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    }
    long = {name: n for name, n in lengths.items() if n >= LONG_FUNCTION}
    assert len(long) * 10 <= len(lengths), sorted(long.items(), key=lambda item: -item[1])


def test_kernels_are_typed_and_have_few_arguments() -> None:
    """Compiled functions as well: every argument and result has a type, none has above ten."""
    wrong = []
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or not is_compiled(node):
                continue
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            typed = node.returns is not None and all(one.annotation for one in arguments)
            if not typed or len(arguments) > 10:
                wrong.append(f"service/lpcfg/{path}:{node.lineno} {node.name}")
    assert not wrong


def is_compiled(function: ast.FunctionDef) -> bool:
    names = {
        n.id for one in function.decorator_list for n in ast.walk(one) if isinstance(n, ast.Name)
    }
    return bool(names & {"njit", "compiled", "jit"})


def test_nothing_in_production_is_used_by_tests_or_benchmarks_alone() -> None:
    """Every module is imported, and every function, class, method and constant is named, by others.

    What a decorator registers (commands, endpoints, validators) is used by whoever made the
    decorator. Names count wherever they stand: two methods of one name vouch for each other.
    """
    imported = {name for _, name, _ in all_imports()}
    imported |= {place.partition(":")[0] for place in KINDS.values()}
    modules_of = {".".join(("lpcfg", *path.with_suffix("").parts)): path for path in sources()}
    entries = {"lpcfg.__main__", "lpcfg.spacy"}  # of commands, and of spaCy's registry
    wrong = [
        str(path)
        for name, path in modules_of.items()
        if name not in entries
        and not name.endswith(".__init__")
        and name not in imported
        and f"{name.rpartition('.')[0]}:{path.stem}" not in imported_names()
    ]
    used = names_in_use()
    wrong += [where for name, where in defined() if not used[name]]
    assert not [one for one in wrong if one.split()[-1] not in CALLED_FROM_OUTSIDE]


CALLED_FROM_OUTSIDE = {
    "from_string": "who imports lpcfg",
    "pretty": "who imports lpcfg",
    "to_nltk": "who imports lpcfg",
    "_repr_svg_": "notebooks",
    "send_400_response": "uvicorn",
    "data_received": "asyncio",
    "readinto": "io.BufferedReader",
    "job_answers": "who imports lpcfg",
    "delete_job": "who imports lpcfg",
    "dependencies_batch": "who imports lpcfg.client",
}
"""Names that nobody calls here, and who does."""


@cache
def imported_names() -> frozenset[str]:
    """List `package:name` of every `from package import name`."""
    found = set()
    for path, tree in sources().items():
        inside = ("lpcfg", *modules(path))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                base = ".".join(inside[: -node.level]) + "." if node.level else ""
                package = (base + (node.module or "")).rstrip(".")
                found |= {f"{package}:{alias.name}" for alias in node.names}
    return frozenset(found)


@cache
def names_in_use() -> Counter[str]:
    """Count how often a name is read: as a variable, an attribute, or a word in a string of
    code.
    """
    used: Counter[str] = Counter()
    for tree in sources().values():
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                used[node.id] += 1
            elif isinstance(node, ast.Attribute):
                used[node.attr] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if id(node) not in docstrings:
                    used.update(re.findall(r"[A-Za-z_]\w*", node.value))
            elif isinstance(node, ast.keyword) and node.arg:
                used[node.arg] += 1
    return used


def defined() -> Iterator[tuple[str, str]]:
    """Yield functions, classes, methods and constants of modules, and where they are."""
    for path, tree in sources().items():
        inner = [node for one in tree.body if isinstance(one, ast.ClassDef) for node in one.body]
        for node in (*tree.body, *inner):
            where = f"service/lpcfg/{path}:{node.lineno}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                known = {"property", "staticmethod", "classmethod", "cached_property", "cache"}
                known |= {"dataclass", "njit", "compiled", "contextmanager"}
                makers = [
                    one.func if isinstance(one, ast.Call) else one for one in node.decorator_list
                ]
                registered = any(not isinstance(m, ast.Name) or m.id not in known for m in makers)
                if not registered and not re.fullmatch(r"__\w+__", node.name):
                    yield node.name, f"{where} {node.name}"
            elif isinstance(node, ast.Assign) and node in tree.body:
                for target in node.targets:
                    if isinstance(target, ast.Name) and not target.id.startswith("__"):
                        yield target.id, f"{where} {target.id}"


def drawn_hierarchy() -> dict[str, str]:
    """Map each child to its parent, as the drawing on top of errors.py has it."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"[\s│├└─]*(?=[A-Z]\w+)", line[4:]) if line.startswith("    ") else None
        if found is None:
            continue
        depth, name = found.end(), re.split(r"\W", line[4 + found.end() :])[0]
        while above and above[-1][0] >= depth:
            above.pop()
        parents[name] = above[-1][1] if above else "Exception"
        above.append((depth, name))
    return parents


def test_the_drawing_of_errors_is_the_hierarchy() -> None:
    real = {
        name: cls.__bases__[0].__name__
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and issubclass(cls, Exception)
    }
    assert drawn_hierarchy() == real


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        lacking("not a git checkout: what is tracked cannot be listed")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_nothing_large_is_tracked_but_models() -> None:
    assert not [
        str(path)
        for path in tracked()
        if path.stat().st_size > LARGEST_FILE and ROOT / "model_store" not in path.parents
    ]


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    machine = r"/(root|work|Users)/\w|/(home)/\w+/|/opt/(pypi|wheels)|file:/{3}"
    registry = r"pypi\.org|pythonhos[t]ed|(docker|ghcr|quay|gcr)\.io/|registry\.\w+\.\w+/"
    found = []
    for path in tracked():
        whole = path.suffix != ".safetensors"  # of these the header; the rest is numbers
        text = path.read_bytes()[: None if whole else 1 << 16].decode("utf-8", errors="ignore")
        match = re.search(f"{machine}|{registry}", text)
        if match:
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {match[0]}")
    assert not found


def test_locked_requirements_all_carry_hashes() -> None:
    for name in (path.name for path in ROOT.glob("requirements*.lock")):
        logical = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", "").splitlines()
        assert logical
        assert not [line for line in logical if "==" not in line or "--hash=sha256:" not in line]


def test_the_drawing_in_the_readme_is_the_package() -> None:
    drawing = (ROOT / "README.md").read_text(encoding="utf-8").partition("service/lpcfg/\n")[2]
    package, _, outside = drawing.partition("```")[0].partition("\nmodel_store/")
    drawn = {line.split()[0].rstrip("/").removesuffix(".py") for line in package.splitlines()}
    parts = {path.parts[0].removesuffix(".py") for path in sources()}
    assert drawn == parts - {"__init__", "__main__"}
    for line in f"model_store/{outside}".splitlines():
        assert (ROOT / line.split()[0]).is_dir(), line


def test_every_dependency_is_locked_and_both_lock_files_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    extras = project["project"].get("optional-dependencies", {})
    extras = {
        name: [one for one in extra if plain_name(one) != "lpcfg"] for name, extra in extras.items()
    }
    served = [one for name in SERVICE for one in extras[name]]
    wanted = [*project["project"]["dependencies"], *groups["build"], *served]
    pinned = pins("requirements.lock")
    assert {plain_name(one) for one in wanted} <= set(pinned)
    wanted += [*groups["dev"], *(one for extra in extras.values() for one in extra)]
    pinned_dev = pins("requirements-dev.lock")
    assert {plain_name(one) for one in wanted} <= set(pinned_dev)
    assert pinned.items() <= pinned_dev.items()
    pinned_batch = pins("requirements-batch.lock")
    batch = [one for name, extra in extras.items() if name not in SERVICE_ONLY for one in extra]
    assert {plain_name(one) for one in batch} <= set(pinned_batch)
    assert pinned.items() <= pinned_batch.items() <= pinned_dev.items()
    assert {plain_name(one) for one in groups["clients"]} <= set(pins("requirements-clients.lock"))


SERVICE = ("cli", "serve", "client", "nltk", "remote")
"""Extras of a checkout and of the image."""
SERVICE_ONLY = {"spacy", "otel"}
"""Extras that runs over collections have no use for."""


def pins(name: str) -> dict[str, str]:
    """Map the packages of a lock file to their versions."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = (re.match(r"([a-z0-9.-]+)==(\S+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def plain_name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace("_", "-")


@cache
def python_files() -> dict[str, ast.Module]:
    """Parse every Python file of the project."""
    return {
        name: ast.parse((ROOT / name).read_text(encoding="utf-8"), name)
        for folder in ("service/lpcfg", "tests", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in [path.relative_to(ROOT).as_posix()]
    }


def test_docstrings_say_what_is_done() -> None:
    assert not [
        f"{name}:{node.body[0].lineno}"
        for name, tree in python_files().items()
        for node in ast.walk(tree)
        if isinstance(node, DOCUMENTED) and RIDDLES.match(ast.get_docstring(node) or "")
    ]


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Check for a value read like a field, whose docstring may name it: `The number of words.`"""
    names = {n.id for n in function.decorator_list if isinstance(n, ast.Name)}
    return bool(names & {"property", "cached_property"})


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    """Those of tests need not: they say why something holds."""
    wrong = []
    for name, tree in python_files().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_property(node):
                continue
            text = ast.get_docstring(node) or "Return"
            if node.name.startswith("test_") or VERBS_LIKE_NOUNS.match(text):
                continue
            if NO_VERBS.match(text):
                wrong.append(f"{name}:{node.body[0].lineno}: {text.splitlines()[0]}")
    assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "The number of words.",
        "A store with two models.",
        "log p of a tree.",
        "Heads of the best tree.",
        "Returns the heads.",
        "UTF-8 in any locale.",
        "Σ over states.",
        "Share of right answers.",
    ],
)
def test_docstrings_that_begin_with_a_noun_are_found(text: str) -> None:
    assert NO_VERBS.match(text)
    assert not NO_VERBS.match("Compute the share of right answers.")
    assert not NO_VERBS.match("Pass what is left.")


def test_names_of_tests_have_at_most_twelve_words() -> None:
    assert not [
        f"{name}:{node.lineno} {node.name}"
        for name, tree in python_files().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and len(node.name.split("_")) - 1 > MOST_WORDS
    ]
