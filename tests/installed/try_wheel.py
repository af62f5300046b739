"""Install a wheel into an empty environment and use it there: commands, service, docs/api.md.

    python tests/installed/try_wheel.py [--python PYTHON] [--fresh] WHEEL

With --fresh all locked requirements are installed as well, and kernels are compiled. Without, those
of the running Python and this checkout's compiled kernels are borrowed, and nothing is fetched.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREE = "(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))"
SERVICE = "http://127.0.0.1:8000"
# Runs in the new environment, in a folder that has only examples/ and api.md of the checkout.
EXAMPLES = """
import doctest, subprocess, sys
from pathlib import Path

serve = [sys.argv[1], "serve", "--port", "0"]
with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as service:
    try:
        for line in service.stdout:
            if line.startswith("ready: "):
                break
        address = line.removeprefix("ready: ").strip().rstrip("/")
        text = Path("api.md").read_text(encoding="utf-8").replace("SERVICE", address)
        try:
            import spacy
        except ImportError:
            text = text.partition("## spaCy")[0] + text.partition("## Errors")[2]
        test = doctest.DocTestParser().get_doctest(text, {"folder": "."}, "api.md", "api.md", 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        failed, tried = runner.run(test)
    finally:
        service.terminate()
import lpcfg
assert not failed and tried > 30, (failed, tried)
assert Path(lpcfg.__file__).is_relative_to(sys.prefix), lpcfg.__file__
print(f"{tried} examples of docs/api.md hold")
"""


def run(*command: str | Path, cwd: Path, text: str = "") -> str:
    """Run a command without this checkout's settings and paths; return what it prints."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LPCFG_", "PYTHONPATH", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        [str(one) for one in command],
        cwd=cwd,
        env=clean,
        input=text,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def environment(python: str, wheel: Path, folder: Path, fresh: bool) -> Path:
    """Make an environment with the wheel; return the folder of its commands."""
    run(python, "-m", "venv", folder, cwd=folder.parent)
    bin = folder / "bin"
    pip = [bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if fresh:
        lock = ROOT / "requirements.lock"
        run(*pip, "--require-hashes", "--requirement", lock, cwd=folder)
    else:
        # Folders named in a .pth file serve packages, but no .pth file in them is read: this
        # checkout, installed editable there, stays out of sight.
        (site,) = folder.glob("lib/python3*/site-packages")
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    run(*pip, "--no-deps", "--no-index", wheel.resolve(), cwd=folder)
    if not fresh:
        (site,) = folder.glob("lib/python3*/site-packages")
        borrow_kernels(site / "lpcfg")
    return bin


def borrow_kernels(package: Path) -> None:
    """Copy this checkout's compiled kernels; they belong to sources of the same age and size."""
    for source in (ROOT / "service" / "lpcfg").rglob("*.py"):
        installed = package / source.relative_to(ROOT / "service" / "lpcfg")
        if compiled := list((source.parent / "__pycache__").glob(f"{source.stem}.*.nb[ci]")):
            shutil.copystat(source, installed)
            (installed.parent / "__pycache__").mkdir(exist_ok=True)
            for one in compiled:
                shutil.copy(one, installed.parent / "__pycache__")


def try_models_of_the_package(bin: Path, folder: Path) -> None:
    """Use `en` beside a store that lacks it, and check that the store keeps to itself."""
    store = ("--store", "own")
    train = ("train", "examples/small.mrg", "--base", "en", "--name", "mine")
    print(run(bin / "lpcfg", *train, *store, cwd=folder).splitlines()[0])
    compare = ("compare", "en", "mine", "examples/small.mrg")
    for command in (compare, ("models", "show", "en"), ("serve", "--check")):
        run(bin / "lpcfg", *command, *store, cwd=folder)
    code = "import lpcfg; print(lpcfg.load('en', store='own').reference)"
    expected = run(bin / "python", "-c", code, cwd=folder)
    listed = [run(bin / "lpcfg", "models", "list", *given, cwd=folder) for given in (store, ())]
    names = [[line.split()[0] for line in one.splitlines()] for one in listed]
    if names[0] != ["mine@1"] or names[1][0] != expected.strip():
        raise SystemExit(f"expected mine@1 in the store and {expected} in the package, got {names}")
    print("models of the package beside a store:", expected, end="", flush=True)


def main() -> None:
    """Try a wheel and print what holds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--fresh", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bin = environment(given.python, given.wheel, folder / "env", given.fresh)
        print(run(bin / "python", "--version", cwd=folder).strip(), flush=True)
        print(run(bin / "lpcfg", "--version", cwd=folder).strip(), flush=True)
        tree = run(bin / "lpcfg", "parse", "en", cwd=folder, text="The cat sat.").strip()
        if tree != TREE:
            raise SystemExit(f"expected {TREE}, got {tree}")
        print("lpcfg parse en:", tree, flush=True)
        shutil.copytree(ROOT / "examples", folder / "examples")
        try_models_of_the_package(bin, folder)
        page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
        (folder / "api.md").write_text(page.replace(SERVICE, "SERVICE"), encoding="utf-8")
        print(run(bin / "python", "-c", EXAMPLES, bin / "lpcfg", cwd=folder).strip())


if __name__ == "__main__":
    main()
