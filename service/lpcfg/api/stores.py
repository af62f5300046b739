"""Find the settings of scripts, without reading the environment where it says nothing."""

import os
from pathlib import Path
from typing import NamedTuple

from lpcfg.base.cores import cores
from lpcfg.base.extras import extra
from lpcfg.store.places import default_store


class Chosen(NamedTuple):
    """The settings that scripts follow."""

    model: str
    store: str
    threads: int


def chosen(store: str | Path | None = None, threads: int | None = None) -> Chosen:
    """Return what is given, set, or else the defaults.

    Reading settings takes .1 s, most of it for importing Pydantic. Without a setting in the
    environment, there is nothing that it could find wrong.
    """
    given = None if store is None else str(store)
    wrong = given == "" or (threads is not None and threads < 1)
    if wrong or any(name.upper().startswith("LPCFG_") for name in os.environ):
        with extra("cli", "settings in the environment"):
            from lpcfg.settings import read_settings

        found = read_settings(model_store=given, threads=threads)
        return Chosen(found.model, found.model_store, found.threads)
    return Chosen("en", given or default_store(), threads or cores())


def chosen_store(given: str | Path | None = None) -> str:
    """Return the store that is given, set, or else the default one."""
    return chosen(given).store
