"""Find the model store, without reading all other settings where there are none to read."""

import os

from lpcfg.store.places import default_store


def chosen_store(given: str | None = None) -> str:
    """Return the store that is given, set, or else the default one.

    Reading settings takes .1 s, most of it for importing Pydantic. Without a setting in the
    environment, there is nothing that it could find wrong.
    """
    if given == "" or any(name.upper().startswith("LPCFG_") for name in os.environ):
        from lpcfg.settings import read_settings

        return read_settings(model_store=given).model_store
    return given or default_store()
