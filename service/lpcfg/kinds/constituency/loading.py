"""Load a parser in little time: a model is read while the engine is imported."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from lpcfg.store.versions import load

if TYPE_CHECKING:
    from lpcfg.kinds.constituency.predict import Parser


def load_parser(reference: str, store: str | Path, *, rescore: bool = True) -> "Parser":
    """Do what `Parser.load` does, and hash the model's files beside the import of the engine."""
    with ThreadPoolExecutor(1) as beside:
        loading = beside.submit(load, reference, store)
        from lpcfg.kinds.constituency.predict import Parser

        return Parser.of(loading.result(), rescore=rescore)
