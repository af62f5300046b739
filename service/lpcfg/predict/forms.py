"""The forms of input files."""

from enum import StrEnum


class Form(StrEnum):
    """How sentences are given."""

    TEXT = "text"
    LINES = "lines"
    TOKENS = "tokens"
    TAGGED = "tagged"
    CONLLU = "conllu"
    JSON = "json"
    PARQUET = "parquet"


_BY_SUFFIX = {
    "jsonl": Form.JSON,
    "ndjson": Form.JSON,
    "conllu": Form.CONLLU,
    "parquet": Form.PARQUET,
}
_PACKED = (".gz", ".zst")


def form_of(name: str) -> Form:
    """Tell by a file's name how its sentences are given: as running text, unless it says so."""
    for ending in _PACKED:
        name = name.removesuffix(ending)
    return _BY_SUFFIX.get(name.rpartition(".")[2].lower(), Form.TEXT)
