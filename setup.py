"""Put the default models into what is built; all else about the package is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

MODELS = Path(__file__).resolve().parent / "model_store"
DEFAULTS = ("en", "en-dep")


class BuildWithModel(build_py):
    """Copies the newest versions of the default models to where `lpcfg.load` looks for them.

    A checkout in use (`pip install --editable`) has its models beside the code, and an image has
    them in a layer of its own: there is no folder of models while the package is built for it.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode or not MODELS.is_dir():
            return
        for name in DEFAULTS:
            versions = [one for one in (MODELS / name).iterdir() if one.name.isdecimal()]
            newest = max(versions, key=lambda one: int(one.name))
            target = Path(self.build_lib, "lpcfg", "model_store", name)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(newest, target / newest.name)


setup(cmdclass={"build_py": BuildWithModel})
