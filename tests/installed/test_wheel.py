"""The wheel: installed alone, it parses, serves and answers as docs/api.md shows."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("service", "model_store", "setup.py", "pyproject.toml", "README.md", "LICENSE")
PIP = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout, from a copy so that nothing is left in it."""
    folder = tmp_path_factory.mktemp("wheel")
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SOURCES],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, files):
        copy = folder / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *PIP, "--wheel-dir", str(folder), "."],
        cwd=folder / "source",
        check=True,
    )
    (built,) = folder.glob("lpcfg-*.whl")
    return built


def test_the_wheel_has_the_newest_default_models_alone(wheel: Path) -> None:
    expected = {}
    for name in ("en", "en-dep"):
        versions = (ROOT / "model_store" / name).glob("[0-9]*")
        newest = max(versions, key=lambda one: int(one.name))
        folder = f"lpcfg/model_store/{name}/{newest.name}"
        expected |= {f"{folder}/{one.name}": one for one in newest.iterdir()}
    with zipfile.ZipFile(wheel) as archive:
        models = {name for name in archive.namelist() if "/model_store/" in name}
        assert models == set(expected)
        for name, file in expected.items():
            assert archive.read(name) == file.read_bytes()


def test_the_wheel_alone_parses_serves_and_answers(wheel: Path) -> None:
    script = ROOT / "tests" / "installed" / "try_wheel.py"
    done = subprocess.run(
        [sys.executable, str(script), str(wheel)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "examples of docs/api.md hold" in done.stdout
